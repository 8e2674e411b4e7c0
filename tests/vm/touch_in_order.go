// SPDX-License-Identifier: GPL-2.0-only OR MIT

// A static program that touches 160 MiB in order, with a runtime that maps memory by
// itself.  Exits with 0 if it made less than half of the pages by faults of its own.
package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

const (
	page      = 4096
	block     = 512 * page
	length    = 160 << 20
	leftPages = 16  // of a block: what a helper leaves to the program
	waits     = 200 // for a block, of 10 ms
	waitsMost = 9000
)

var waited int

func faults() int64 {
	var usage syscall.Rusage

	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Minflt
}

func isMade(block uintptr) bool {
	var seen [512]byte
	made := 0

	syscall.Syscall(syscall.SYS_MINCORE, block, uintptr(len(seen)*page),
		uintptr(unsafe.Pointer(&seen[0])))
	for _, present := range seen {
		made += int(present & 1)
	}
	return made >= len(seen)-leftPages
}

// How fast the daemon is does not matter, only that it makes the block.
func waitFor(block uintptr) {
	for i := 0; i < waits && waited < waitsMost && !isMade(block); i++ {
		time.Sleep(10 * time.Millisecond)
		waited++
	}
}

func main() {
	memory := make([]byte, length)
	base := uintptr(unsafe.Pointer(&memory[0]))
	before := faults()

	for at := 0; at < length; at += page {
		memory[at] = 1
		here := base + uintptr(at)
		// Behind the first pages of a block, which tell that it has come.
		if here%block/page == 128 && at > 2*block && at+3*block < length {
			waitFor(here - here%block + block)
		}
	}
	if faults()-before >= length/page/2 {
		os.Exit(2)
	}
}
