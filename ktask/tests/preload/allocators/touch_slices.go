// SPDX-License-Identifier: GPL-2.0-only OR MIT

// A program of Go with a part of C, into which the shim is loaded: Go's runtime maps
// memory with locks of its own held.  It fills slices in order, the last one to a
// third, and ends with "ok", or tells what it found.
package main

/*
#include <unistd.h>
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"
)

const (
	page   = 4096
	block  = 2 << 20
	length = 256 << 20
	waits  = 4000 // of 5 ms, for all of it
	// What may be made in vain.
	first  = length/16 + block
	rounds = 3
)

var waited int

func countPresent(memory []byte) int {
	seen := make([]byte, len(memory)/page)
	nr := 0

	syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])),
		uintptr(len(memory)), uintptr(unsafe.Pointer(&seen[0])))
	for _, present := range seen {
		nr += int(present & 1)
	}
	return nr
}

// Return: whether something was made before the program got there.
func touch(memory []byte) bool {
	helped := false

	for at := 0; at < len(memory); at += page {
		if memory[at] != 0 {
			fmt.Println("contents")
			os.Exit(1)
		}
		memory[at] = 1
		if (at+page)%block != 0 || at+page+block > len(memory) {
			continue
		}
		for !helped && waited < waits {
			helped = countPresent(memory[at+page:at+page+block]) > 0
			time.Sleep(5 * time.Millisecond)
			waited++
			if waited%200 == 0 {
				break
			}
		}
	}
	return helped
}

func main() {
	if C.getpid() != C.int(os.Getpid()) {
		os.Exit(1)
	}
	// Memory that is used again is filled with zeros.
	debug.SetGCPercent(-1)
	for round := 0; round < rounds; round++ {
		if !touch(make([]byte, length)) {
			fmt.Println("nothing was made ahead")
			os.Exit(1)
		}
	}
	memory := make([]byte, length)
	third := length / 3 / block * block
	touch(memory[:third])
	time.Sleep(500 * time.Millisecond)
	if extra := countPresent(memory[third:]) * page; extra > first+third/100*3 {
		fmt.Println(extra/page, "pages too many")
		os.Exit(1)
	}
	fmt.Println("ok")
}
