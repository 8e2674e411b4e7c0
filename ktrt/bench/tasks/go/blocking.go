// SPDX-License-Identifier: GPL-2.0-only OR MIT

// The blocking cases of `make bench-tasks` by goroutines; see ../blocking.c.  They read
// and fault as any program in Go does.  They sleep by a system call, as that stands for
// any call that blocks; the language's own timers block no thread.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	page        = 4096
	part        = 65536
	dontNeed    = 4 // POSIX_FADV_DONTNEED
	threadClock = 3 // CLOCK_THREAD_CPUTIME_ID
)

type bench struct {
	kind   int // of block(), 3: each task another
	direct int // file descriptors
	cached int
	mapped []byte
	begun  uint32
	good   uint32
	sum    uint32 // of what was read, so that it is
}

var loopsPerNs float64

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(2)
}

func threadNs() int64 {
	var now syscall.Timespec

	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock,
		uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

//go:noinline
func loop(nr int) {
	for i := 0; i < nr; i++ {
	}
}

func calibrate() {
	runtime.LockOSThread()
	start := threadNs()
	loop(20000000)
	loopsPerNs = 2e7 / float64(threadNs()-start)
	runtime.UnlockOSThread()
}

func (b *bench) openFile() {
	path := os.Getenv("BENCH_TASKS_FILE")
	var status syscall.Stat_t
	var err error

	if b.direct, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECT, 0); err != nil {
		fail(path, err)
	}
	if b.cached, err = syscall.Open(path, syscall.O_RDONLY, 0); err != nil {
		fail(path, err)
	}
	if err = syscall.Fstat(b.cached, &status); err != nil {
		fail(path, err)
	}
	size := int(status.Size) / part * part
	b.mapped, err = syscall.Mmap(b.cached, 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		fail(path, err)
	}
	if err = syscall.Madvise(b.mapped, syscall.MADV_RANDOM); err != nil {
		fail(path, err)
	}
}

func (b *bench) reset() {
	b.begun, b.good = 0, 0
	if b.mapped == nil {
		return
	}
	syscall.Madvise(b.mapped, syscall.MADV_DONTNEED)
	syscall.Syscall6(syscall.SYS_FADVISE64, uintptr(b.cached), 0, 0, dontNeed, 0, 0)
}

// As many as are in use at a time.
var buffers = sync.Pool{New: func() interface{} { return new([part + page]byte) }}

func (b *bench) readPart(at int) bool {
	buffer := buffers.Get().(*[part + page]byte)
	defer buffers.Put(buffer)
	skip := -int(uintptr(unsafe.Pointer(buffer))) & (page - 1)

	nr, err := syscall.Pread(b.direct, buffer[skip:skip+part], int64(at))
	return err == nil && nr == part
}

func (b *bench) touchPart(at int) bool {
	var sum byte

	for i := 0; i < part; i += page {
		sum += b.mapped[at+i]
	}
	atomic.AddUint32(&b.sum, uint32(sum))
	return true
}

func (b *bench) block() {
	nr := int(atomic.AddUint32(&b.begun, 1)) - 1
	kind, at, good := b.kind, 0, true

	if kind == 3 {
		kind = nr % 3
	}
	if b.mapped != nil {
		at = nr * part % len(b.mapped)
	}
	switch kind {
	case 0:
		good = syscall.Nanosleep(&syscall.Timespec{Nsec: 1000000}, nil) == nil
	case 1:
		good = b.readPart(at)
	case 2:
		good = b.touchPart(at)
	}
	if good {
		atomic.AddUint32(&b.good, 1)
	}
	loop(int(100000 * loopsPerNs))
}

// Nanoseconds a task.
func (b *bench) run(nr int) float64 {
	var all sync.WaitGroup

	b.reset()
	start := time.Now()
	all.Add(nr)
	for i := 0; i < nr; i++ {
		go func() {
			b.block()
			all.Done()
		}()
	}
	all.Wait()
	took := time.Since(start)
	if b.good != uint32(nr) {
		fmt.Fprintln(os.Stderr, "no right result")
		os.Exit(1)
	}
	return float64(took.Nanoseconds()) / float64(nr)
}

func main() {
	kinds := map[string]int{"block": 0, "block-read": 1, "block-fault": 2,
		"block-mixed": 3}
	var b bench

	if len(os.Args) < 3 {
		fail("usage", fmt.Errorf("%s CASE THREADS [small]", os.Args[0]))
	}
	kind, known := kinds[os.Args[1]]
	threads, err := strconv.Atoi(os.Args[2])
	if !known || err != nil {
		os.Exit(2)
	}
	calibrate()
	runtime.GOMAXPROCS(threads)
	if b.kind = kind; kind > 0 {
		b.openFile()
	}
	ns := b.run(40)
	if len(os.Args) == 3 {
		ns = b.run(400)
	}
	fmt.Printf("%.1f\n", ns)
}
