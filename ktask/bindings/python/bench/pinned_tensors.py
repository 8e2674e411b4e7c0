# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Pinned tensors by torch and by ktask, by turns, on a machine with a GPU: make bench-torch.

    pinned_tensors.py [MIB [ROUNDS]]

Prints how long a tensor takes to be made, how fast a GPU copies from it, and how long it
takes to be given back: medians, and the median of the ratios of the rounds.
"""

import statistics
import sys
import time

import torch

import ktask

UNIT = 64 << 20


def make_plain(length):
    return torch.empty(length, dtype=torch.uint8, pin_memory=True)


def make_whole(length):
    return ktask.pinned_empty(length, dtype=torch.uint8)


def make_pieces(length):
    return ktask.pinned_empty(length, dtype=torch.uint8, unit=UNIT)


SIDES = {
    "torch.empty(pin_memory=True)": make_plain,
    "ktask.pinned_empty()": make_whole,
    "the same, unit of 64 MiB": make_pieces,
}


def copy(tensor, there):
    torch.cuda.synchronize()
    for part, part_there in zip(tensor.split(UNIT), there.split(UNIT)):
        part_there.copy_(part, non_blocking=True)
    torch.cuda.synchronize()


def run(make, there):
    """The seconds of making, copying and giving back."""
    times = [time.perf_counter()]
    tensor = make(len(there))
    times.append(time.perf_counter())
    assert tensor.is_pinned()
    tensor[::4096] = 1
    begin = time.perf_counter()
    copy(tensor, there)
    copied = time.perf_counter() - begin
    times.append(time.perf_counter())
    del tensor
    torch._C._host_emptyCache()  # torch keeps what it has pinned
    times.append(time.perf_counter())
    return times[1] - times[0], copied, times[3] - times[2]


def main():
    mib, rounds = (int(word) for word in sys.argv[1:] + ["8192", "5"][len(sys.argv) - 1 :])
    torch.cuda.init()
    there = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
    runs = {name: [] for name in SIDES}
    names = list(SIDES)
    for index in range(rounds + 1):
        for turn in range(len(names)):
            name = names[(index + turn) % len(names)]
            seconds = run(SIDES[name], there)
            if index:  # the first round meets a cold driver
                runs[name].append(seconds)
    plain = [seconds[0] for seconds in runs[names[0]]]
    for name, seconds in runs.items():
        made, copied, back = (statistics.median(each) for each in zip(*seconds))
        ratio = statistics.median(
            base / each[0] for base, each in zip(plain, seconds)
        )
        print(f"{name:30} made in {made:7.3f} s ({ratio:5.2f} x), copied at"
              f" {(mib << 20) / copied / 1e9:5.1f} GB/s, given back in {back:6.3f} s")


if __name__ == "__main__":
    main()
