// SPDX-License-Identifier: GPL-2.0-only OR MIT

// The tasks: a goroutine for each that became ready.  Go knows no dependences,
// so each task counts those that are not met.
package main

import (
	"sync"
	"sync/atomic"
)

// Kinds of tasks; see ../peer.h.
const (
	block = iota
	begin
	seal
)

// Of begin and seal, sweep is the checkpoint's number, from 1.
type task struct{ kind, sweep, row, col int }

type graph struct {
	g             *grid
	files         *checkpoints
	sweeps, every int
	blocks        []int32 // by sweep and block: what is not met
	begins, seals []int32
	running       sync.WaitGroup
}

func newGraph(g *grid, files *checkpoints, sweeps, every int) *graph {
	nr := 0
	if every > 0 {
		nr = sweeps / every
	}
	a := &graph{g: g, files: files, sweeps: sweeps, every: every,
		blocks: make([]int32, (sweeps+1)*g.blockRows*g.blockCols),
		begins: make([]int32, nr+1), seals: make([]int32, nr+1)}
	for sweep := 1; sweep <= sweeps; sweep++ {
		for row := 0; row < g.blockRows; row++ {
			for col := 0; col < g.blockCols; col++ {
				*a.count(sweep, row, col) = a.before(sweep, row, col)
			}
		}
	}
	for i := 1; i <= nr; i++ {
		a.seals[i] = int32(g.blockRows*g.blockCols) + one(i > 1)
		a.begins[i] = one(i > 1) + one(i > 2)
	}
	return a
}

func one(holds bool) int32 {
	if holds {
		return 1
	}
	return 0
}

func (a *graph) count(sweep, row, col int) *int32 {
	return &a.blocks[(sweep*a.g.blockRows+row)*a.g.blockCols+col]
}

func (a *graph) writes(sweep int) bool {
	return a.every > 0 && sweep%a.every == 0
}

func (a *graph) before(sweep, row, col int) int32 {
	nr := one(row > 0) + one(col > 0) + one(a.writes(sweep))
	if sweep > 1 {
		nr += 1 + one(row+1 < a.g.blockRows) + one(col+1 < a.g.blockCols)
	}
	return nr
}

func (a *graph) met(count *int32, next []task, t task) []task {
	if atomic.AddInt32(count, -1) == 0 {
		next = append(next, t)
	}
	return next
}

func (a *graph) metBlock(next []task, sweep, row, col int) []task {
	if sweep > a.sweeps || row < 0 || col < 0 || row >= a.g.blockRows ||
		col >= a.g.blockCols {
		return next
	}
	return a.met(a.count(sweep, row, col), next, task{block, sweep, row, col})
}

func (a *graph) metBegin(next []task, nr int) []task {
	if nr >= len(a.begins) {
		return next
	}
	return a.met(&a.begins[nr], next, task{kind: begin, sweep: nr})
}

func (a *graph) metSeal(next []task, nr int) []task {
	if nr >= len(a.seals) {
		return next
	}
	return a.met(&a.seals[nr], next, task{kind: seal, sweep: nr})
}

// Does a task; those that are ready by that.
func (a *graph) do(t task, next []task) []task {
	switch t.kind {
	case begin:
		a.files.begin(t.sweep, t.sweep*a.every)
		for row := 0; row < a.g.blockRows; row++ {
			for col := 0; col < a.g.blockCols; col++ {
				next = a.metBlock(next, t.sweep*a.every, row, col)
			}
		}
		return a.metBegin(next, t.sweep+1)
	case seal:
		a.files.seal(t.sweep)
		next = a.metSeal(next, t.sweep+1)
		return a.metBegin(next, t.sweep+2)
	}
	a.g.sweep(t.row, t.col)
	if a.writes(t.sweep) {
		a.files.block(t.sweep/a.every, t.row, t.col)
		next = a.metSeal(next, t.sweep/a.every)
	}
	next = a.metBlock(next, t.sweep, t.row+1, t.col)
	next = a.metBlock(next, t.sweep, t.row, t.col+1)
	next = a.metBlock(next, t.sweep+1, t.row, t.col)
	next = a.metBlock(next, t.sweep+1, t.row-1, t.col)
	return a.metBlock(next, t.sweep+1, t.row, t.col-1)
}

// A goroutine goes on with one of those that it made ready.
func (a *graph) work(t task) {
	defer a.running.Done()
	for {
		next := a.do(t, nil)
		if len(next) == 0 {
			return
		}
		t = next[0]
		a.start(next[1:])
	}
}

func (a *graph) start(tasks []task) {
	a.running.Add(len(tasks))
	for _, t := range tasks {
		go a.work(t)
	}
}

func (a *graph) run() {
	first := []task{}
	if a.sweeps > 0 && *a.count(1, 0, 0) == 0 {
		first = append(first, task{block, 1, 0, 0})
	}
	if len(a.begins) > 1 {
		first = append(first, task{kind: begin, sweep: 1})
	}
	a.start(first)
	a.running.Wait()
}
