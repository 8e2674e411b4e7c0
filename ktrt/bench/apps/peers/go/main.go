// SPDX-License-Identifier: GPL-2.0-only OR MIT

// heat in Go: the options that the benchmark gives, the plate, and what it
// cost as JSON.  graph.go has the tasks, checkpoint.go the files.
package main

// #cgo LDFLAGS: -lxxhash
// #include <xxhash.h>
import "C"

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

type grid struct {
	rows, cols, block    int // cells; a block's edge
	blockRows, blockCols int
	width                int // of a row with its border
	cells                []float64
}

func newGrid(rows, cols, block int) *grid {
	g := &grid{rows: rows, cols: cols, block: block,
		blockRows: (rows + block - 1) / block,
		blockCols: (cols + block - 1) / block,
		width:     cols + 2}
	g.cells = make([]float64, (rows+2)*g.width)
	for row := 0; row < rows+2; row++ {
		g.cells[row*g.width] = 1
	}
	return g
}

// The rows and columns of cells of a block: [from, to).
func (g *grid) area(row, col int) (r0, r1, c0, c1 int) {
	return 1 + row*g.block, 1 + min(row*g.block+g.block, g.rows),
		1 + col*g.block, 1 + min(col*g.block+g.block, g.cols)
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func (g *grid) sweep(row, col int) {
	r0, r1, c0, c1 := g.area(row, col)
	for r := r0; r < r1; r++ {
		// As long as each other, so that bounds are checked once.
		north := g.cells[(r-1)*g.width+c0 : (r-1)*g.width+c1]
		south := g.cells[(r+1)*g.width+c0 : (r+1)*g.width+c1][:len(north)]
		here := g.cells[r*g.width+c0 : r*g.width+c1][:len(north)]
		east := g.cells[r*g.width+c0+1 : r*g.width+c1+1][:len(north)]
		west := g.cells[r*g.width+c0-1]
		for i := range north {
			west = (north[i] + south[i] + west + east[i]) / 4
			here[i] = west
		}
	}
}

// XXH3, as heat has it: at a block's size the call is 1 % of the sum.
func sum64(data []byte) uint64 {
	return uint64(C.XXH3_64bits(unsafe.Pointer(&data[0]),
		C.size_t(len(data))))
}

func bytesOf(cells []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&cells[0])), 8*len(cells))
}

func (g *grid) sum() (sum uint64) {
	for row := 1; row <= g.rows; row++ {
		at := row*g.width + 1
		sum = bits.RotateLeft64(sum, 1) ^
			sum64(bytesOf(g.cells[at:at+g.cols]))
	}
	return
}

func cpuSeconds() (float64, int64) {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) * 1e-9, usage.Nvcsw
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "heat-go:", err)
	os.Exit(1)
}

func main() {
	rows := flag.Int("rows", 2048, "rows of the plate")
	cols := flag.Int("cols", 2048, "columns of the plate")
	block := flag.Int("block", 256, "rows and columns of a block")
	sweeps := flag.Int("iterations", 100, "sweeps over the plate")
	every := flag.Int("every", 0, "sweeps between checkpoints")
	dir := flag.String("dir", ".", "directory of the checkpoints")
	workers := flag.Int("workers", runtime.NumCPU(), "GOMAXPROCS")
	buffered := flag.Bool("buffered", false, "through the page cache")
	flag.Bool("json", true, "always")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)
	g := newGrid(*rows, *cols, *block)
	files := newCheckpoints(g, *dir, !*buffered)

	begin := time.Now()
	cpu, switches := cpuSeconds()
	newGraph(g, files, *sweeps, *every).run()
	seconds := time.Since(begin).Seconds()
	cpuEnd, switchesEnd := cpuSeconds()
	files.end()
	if err := files.err(); err != nil {
		fail(err)
	}
	fmt.Printf("{\"seconds\":%g,\"cells_per_second\":%g,\"cpu_seconds\":%g,"+
		"\"cpu_percent\":%g,\"bytes_written\":%d,\"bytes_read\":0,"+
		"\"switches\":%d,\"sum\":\"%016x\"}\n",
		seconds, float64(*rows)*float64(*cols)*float64(*sweeps)/seconds,
		cpuEnd-cpu, 100*(cpuEnd-cpu)/seconds/float64(*workers),
		files.written(), switchesEnd-switches, g.sum())
}
