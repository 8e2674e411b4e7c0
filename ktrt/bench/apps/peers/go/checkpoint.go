// SPDX-License-Identifier: GPL-2.0-only OR MIT

// Checkpoints in heat's own format, which it can go on from.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	page  = 4096
	magic = 0x31544145484b5459
)

type file struct {
	fd    int
	sweep int
	sums  []byte // of the blocks, in whole pages
}

type checkpoints struct {
	g      *grid
	dir    string
	flags  int
	open   [2]file // by number
	bytes  int64
	spares sync.Pool // of memory for a block
	once   sync.Once
	failed error
}

func newCheckpoints(g *grid, dir string, direct bool) *checkpoints {
	flags := os.O_RDWR | os.O_CREATE | syscall.O_CLOEXEC
	if direct {
		flags |= syscall.O_DIRECT
	}
	c := &checkpoints{g: g, dir: dir, flags: flags}
	c.spares.New = func() any { return aligned(c.blockBytes()) }
	return c
}

func (c *checkpoints) keep(err error) {
	if err != nil {
		c.once.Do(func() { c.failed = err })
	}
}

func (c *checkpoints) err() error     { return c.failed }
func (c *checkpoints) written() int64 { return atomic.LoadInt64(&c.bytes) }

func round(bytes int) int { return (bytes + page - 1) &^ (page - 1) }

// Zeroed memory that direct I/O accepts.
func aligned(bytes int) []byte {
	all := make([]byte, round(bytes)+page)
	skip := -uintptr(unsafe.Pointer(&all[0])) & (page - 1)
	return all[skip:][:round(bytes)]
}

func (c *checkpoints) part(nr int) string {
	return fmt.Sprintf("%s/heat.0.part%d", c.dir, (nr-1)%2)
}

func (c *checkpoints) blockBytes() int {
	return round(c.g.block * c.g.block * 8)
}

func (c *checkpoints) begin(nr, sweep int) {
	fd, err := syscall.Open(c.part(nr), c.flags, 0o644)
	c.keep(err)
	sums := round(c.g.blockRows * c.g.blockCols * 8)
	all := page + sums + c.g.blockRows*c.g.blockCols*c.blockBytes()
	c.keep(syscall.Ftruncate(fd, int64(all)))
	// Else writes that make the file longer wait for each other.
	err = syscall.Fallocate(fd, 0, 0, int64(all))
	if err != syscall.EOPNOTSUPP {
		c.keep(err)
	}
	c.open[nr%2] = file{fd, sweep, aligned(c.g.blockRows * c.g.blockCols * 8)}
}

func writeAll(fd int, data []byte, at int64) error {
	for len(data) > 0 {
		done, err := syscall.Pwrite(fd, data, at)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, at = data[done:], at+int64(done)
	}
	return nil
}

func (c *checkpoints) block(nr, row, col int) {
	to := &c.open[nr%2]
	bytes := c.blockBytes()
	index := row*c.g.blockCols + col
	r0, r1, c0, c1 := c.g.area(row, col)
	copied := c.spares.Get().([]byte)
	defer c.spares.Put(copied)
	at := 0
	for r := r0; r < r1; r++ {
		at += copy(copied[at:],
			bytesOf(c.g.cells[r*c.g.width+c0:r*c.g.width+c1]))
	}
	for i := range copied[at:] {
		copied[at+i] = 0
	}
	binary.LittleEndian.PutUint64(to.sums[8*index:], sum64(copied))
	c.keep(writeAll(to.fd, copied, int64(page+len(to.sums)+index*bytes)))
	atomic.AddInt64(&c.bytes, int64(bytes))
}

func (c *checkpoints) header(from *file) []byte {
	header := aligned(page)
	put := binary.LittleEndian
	put.PutUint64(header, magic)
	for i, value := range []int{c.g.rows, c.g.cols, c.g.block, 0, c.g.rows,
		from.sweep} {
		put.PutUint32(header[8+4*i:], uint32(value))
	}
	put.PutUint64(header[32:], sum64(from.sums))
	put.PutUint64(header[40:], sum64(header[:40]))
	return header
}

// What was there, if anything, becomes the part: its room is used again.
func swap(from, to string) error {
	const atCwd, exchange = ^uintptr(99), 2
	call, known := map[string]uintptr{"amd64": 316, "arm64": 276}[runtime.GOARCH]
	if !known {
		return os.Rename(from, to)
	}
	a, _ := syscall.BytePtrFromString(from)
	b, _ := syscall.BytePtrFromString(to)
	_, _, errno := syscall.Syscall6(call, atCwd, uintptr(unsafe.Pointer(a)),
		atCwd, uintptr(unsafe.Pointer(b)), exchange, 0)
	if errno == 0 {
		return nil
	}
	return os.Rename(from, to)
}

// Nothing is written any more.
func (c *checkpoints) end() {
	os.Remove(c.part(1))
	os.Remove(c.part(2))
}

func (c *checkpoints) seal(nr int) {
	from := &c.open[nr%2]
	c.keep(writeAll(from.fd, from.sums, page))
	c.keep(writeAll(from.fd, c.header(from), 0))
	c.keep(syscall.Fsync(from.fd))
	c.keep(swap(c.part(nr), fmt.Sprintf("%s/heat.0.%d", c.dir, nr%2)))
	if dir, err := os.Open(c.dir); err == nil {
		dir.Sync()
		dir.Close()
	}
	syscall.Close(from.fd)
}
