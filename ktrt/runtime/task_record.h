/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The record of a task: its fields, flags and counts.  Does not own what is done with tasks
 * (task_life.h).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_TASK_RECORD_H
#define RUNTIME_TASK_RECORD_H

#include <ktask/runtime.h>

#include "atomic.h"

/*
 * What a task still lacks to be complete, in one number.  The low half counts children.
 * Above it are bits: its body runs, somebody waits for the children; and the number of
 * external events.  Children that the body has made are added only when the body ends
 * or waits ("credited"), so that making a child takes no atomic operation.  Until then
 * the low half may be negative.  0 means complete.
 */
#define LIVE_BODY (1ull << 32)
#define LIVE_WAITED (1ull << 33)
#define LIVE_EVENT (1ull << 40)

#define ARG_INLINE 64
#define ACCESS_INLINE 8
#define ACCESS_POOLS 4

struct epoch;
struct domain;

/* Membership of a task in an epoch, of which readers and writers say what they are: the
 * address with the bits below; M.  See dependences.h. */
struct access {
	uintptr_t bits;
};

enum { ACCESS_READS = 1, ACCESS_WRITES = 2, ACCESS_ROLE = 3 };

static inline struct epoch *access_epoch(const struct access *access)
{
	return (struct epoch *)(access->bits & ~(uintptr_t)ACCESS_ROLE);
}

enum {
	TASK_ALWAYS = 1, /* runs even if its group is cancelled */
	TASK_ARG_ALLOCATED = 2,
	TASK_ACCESS_ALLOCATED = 4,
	TASK_OUTER = 8, /* stands for an attached thread */
	TASK_NODE_QUEUE = 16, /* has a priority or a node */
	/* Its record is lent by its parent and goes back to it */
	TASK_LOANED = 32,
	TASK_NODE = 64, /* a node of a graph: no task, but what tasks run */
	TASK_FOR_NODE = 128, /* runs the function of a node */
	TASK_RUN = 256, /* a run of a graph: the parent of TASK_FOR_NODE */
	/* Stands for a dependence of a task and is never queued; see proxies.h.
	 * TASK_UNDEFERRED is set as well, which it never is for a run of a graph. */
	TASK_PROXY = TASK_RUN,
	TASK_TURNS = 512, /* names commutative data, which tasks use by turns */
	TASK_HAS_TURNS = 2048, /* has its turn at all of these */
	TASK_SPOILT = 1024, /* data that it reads is of a task that failed */
	TASK_FINAL = 4096, /* so are its children, which are undeferred */
	TASK_UNDEFERRED = 8192, /* its maker waits and will run it; */
	TASK_MET = 16384, /* its dependences are met, so it may; */
	TASK_LEFT = 32768, /* the thread of its maker has ended meanwhile */
	/* Not TASK_UNDEFERRED: proxies stand for some of its dependences. */
	TASK_PROXIES = TASK_LEFT,
};

struct ktrt_task {
	CACHE_ALIGNED ktrt_func func; /* M, E (task_spoil()) */
	void *arg; /* M */
	/* Read by thieves of other tasks, too; M, A */
	struct ktrt_task *parent;
	union {
		/* Read by thieves of other tasks, too; M, A */
		struct ktrt_group *group;
		/* TASK_NODE: they wait for it; task_graph.h */
		struct ktrt_task **after;
	};
	/* In lists of ready tasks: E; on node queues, and where it waits for a turn: Q */
	struct ktrt_task *next;
	/* One more than the parent's; read as ->parent is; M, A */
	uint32_t nesting;
	uint16_t flags; /* M; what E adds: A */
	int16_t priority; /* M */
	union {
		struct {
			uint64_t spawned; /* children, by the body; B */
			uint64_t credited; /* of these, in @live; B */
		};
		struct { /* TASK_NODE, which needs no more than this line */
			uint32_t unmet; /* of those before it, in this run; A */
			uint32_t nr_before; /* task_graph.h */
			uint32_t nr_after;
			uint32_t arrow; /* the last of these, by number */
		};
	};

	CACHE_ALIGNED uint64_t live; /* A */
	/* Dependences not met, and 1 while they are made; A */
	uint32_t pending;
	int error; /* first code of the body or a child; A */
	/* First code of a child that was not yet waited for; A */
	int child_error;
	uint32_t wake; /* signal to the waiter: children are complete; A */
	union {
		struct domain *domain; /* data of the children; B */
		ktrt_func kept; /* TASK_NODE that is TASK_SPOILT; E */
	};
	struct access *access; /* M */
	uint32_t nr_access; /* M */
	int16_t node; /* M */
	uint16_t maker; /* slot of the worker that made it, plus 1; M */
	uint64_t order; /* on a node queue; Q */
	union {
		/* TASK_OUTER: a record that came back; A */
		struct ktrt_task *back;
		struct ktrt_task *of; /* TASK_FOR_NODE: the node; B */
		struct ktrt_graph *graph; /* TASK_RUN; M */
		struct proxies *proxies; /* TASK_PROXIES; M */
	};

	CACHE_ALIGNED char arg_inline[ARG_INLINE]; /* M, B */
	CACHE_ALIGNED struct access access_inline[ACCESS_INLINE]; /* M */

	/* On a node queue; Q: */
	union {
		struct ktrt_task *prev; /* in the list; */
		size_t heap_index;
	};
	struct ktrt_task *family; /* the next family in the bucket; */
	struct ktrt_task *elder, *younger; /* of its family, in a ring */
	/* The slot, plus 1, of the attached thread that has left it there; else 0, also
	 * on no node queue; Q, A */
	uint32_t left_by;
};

#endif /* RUNTIME_TASK_RECORD_H */
