#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A source in C++ that throws through ktask_uffd_fill(), which several threads run: the
# program ends at once, whichever call throws, rather than go on with a half-made job.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $dir = scratch();
my $program = "$dir/throws";

spew("$program.cpp", <<'CPP');
#include <ktask/uffd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static std::atomic<int> calls;
static int throw_at;

static int give(void *buf, size_t len, uint64_t, void *)
{
	if (calls++ == throw_at)
		throw std::runtime_error("refused");
	memset(buf, 1, len);
	return 0;
}

int main(int argc, char **argv)
{
	const size_t len = 16 << 20;
	void *at = mmap(nullptr, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
	ktask_opts opts = KTASK_OPTS_INIT;
	uffdio_api api = {};
	uffdio_register range = {};

	fill.uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK |
				 UFFD_USER_MODE_ONLY);
	api.api = UFFD_API;
	range.range.start = (__u64)at;
	range.range.len = len;
	range.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (fill.uffd < 0 || ioctl(fill.uffd, UFFDIO_API, &api) ||
	    ioctl(fill.uffd, UFFDIO_REGISTER, &range))
		return 77;
	throw_at = atoi(argv[1]);
	opts.max_threads = (unsigned)atoi(argv[2]);
	fill.addr = at;
	fill.len = len;
	fill.source_func = give;
	try {
		printf("returned %d\n", ktask_uffd_fill(&fill, &opts));
	} catch (...) {
		puts("caught");
	}
	return 0;
}
CPP
my ($status, $said) = capture("$cxx -std=c++11 -g -I$top/ktask/include -o $program "
	. "$program.cpp -L$build -lktask -Wl,-rpath,$build");
is($status, 0, 'a program in C++ is made') or diag($said);
($status, $said) = capture("$program 1000000 2");
plan(skip_all => 'no userfaultfd') if $status == 77;
is($said, "returned 0\n", 'a source that throws nothing is read');

for my $threads (1, 2) {
	for my $call (0, 1, 100) {
		($status, $said) = capture("ulimit -c 0; $program $call $threads");
		isnt($status, 0, "$threads threads, call $call: the program ends");
		unlike($said, qr/caught|returned/, 'at once');
	}
}

done_testing();
