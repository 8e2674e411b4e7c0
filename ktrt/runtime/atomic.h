/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Short names for the few atomic operations that the runtime uses, and futexes.
 * There are no fences: the thread sanitizer does not know them, and on x86 a
 * sequentially consistent store costs less.
 *
 * Locking: a thread takes locks by rising rank (rt.h has what each is for).
 */
#ifndef RUNTIME_ATOMIC_H
#define RUNTIME_ATOMIC_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/lock_rank.h"

#define CACHE_LINE 64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))

#define at_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define at_peek(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define at_load_seq(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define at_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define at_poke(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define at_store_seq(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
/* All return the value from before. */
#define at_add(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define at_sub(p, v) __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST)
#define at_or(p, v) __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST)
#define at_swap(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define at_cas(p, old, v)                                               \
	__atomic_compare_exchange_n(p, old, v, false, __ATOMIC_SEQ_CST, \
				    __ATOMIC_ACQUIRE)

/* A counter that one thread writes and others read. */
#define count_up(p) at_poke(p, at_peek(p) + 1)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Functions on the path from making a task to the sleeping worker that begins it.
 * After a pause caches and TLBs hold none of that code, so it is kept together.
 */
#define WAKE_PATH __attribute__((hot))

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* A line that will be written, unless another core's cache keeps it. */
static inline void fetch_to_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Inline, because the code that sleeps and wakes is not in the caches when it is
 * needed.  Each cache line then costs as much as a dozen instructions.
 */
static inline void call_futex(uint32_t *word, long op, long value,
			      const struct timespec *limit)
{
#if defined(__x86_64__) && defined(__LP64__)
	register const struct timespec *timeout __asm__("r10") = limit;
	long result = SYS_futex;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(word), "S"(op), "d"(value), "r"(timeout)
			 : "rcx", "r11", "memory");
#else
	syscall(SYS_futex, word, op, value, limit, NULL, 0);
#endif
}

/* Sleeps while *word is @value; may return early. */
static inline void futex_sleep(uint32_t *word, uint32_t value)
{
	call_futex(word, FUTEX_WAIT_PRIVATE, value, NULL);
}

static inline void futex_wake(uint32_t *word, int nr)
{
	call_futex(word, FUTEX_WAKE_PRIVATE, nr, NULL);
}

/*
 * A word that is signalled once.  The waiter owns its memory again as soon as it has
 * seen the signal.  So the signaller touches nothing afterwards; it only passes the
 * address to the futex call.
 */
enum { SIGNAL_NONE, SIGNAL_SLEEPS, SIGNAL_GIVEN };

static inline void signal_give(uint32_t *word)
{
	if (at_swap(word, (uint32_t)SIGNAL_GIVEN) == SIGNAL_SLEEPS)
		futex_wake(word, 1);
}

static inline bool signal_given(uint32_t *word)
{
	return at_load(word) == SIGNAL_GIVEN;
}

static inline void signal_await(uint32_t *word)
{
	uint32_t none = SIGNAL_NONE;

	if (!at_cas(word, &none, (uint32_t)SIGNAL_SLEEPS))
		return;
	while (!signal_given(word))
		futex_sleep(word, SIGNAL_SLEEPS);
}

/* The same until @end_ns at most: who gives the signal later wakes nobody. */
static inline void signal_await_until(uint32_t *word, uint64_t end_ns)
{
	uint32_t none = SIGNAL_NONE;
	uint64_t now = now_ns();

	if (!at_cas(word, &none, (uint32_t)SIGNAL_SLEEPS))
		return;
	for (; !signal_given(word) && now < end_ns; now = now_ns()) {
		struct timespec left = { (time_t)((end_ns - now) / 1000000000),
					 (long)((end_ns - now) % 1000000000) };

		call_futex(word, FUTEX_WAIT_PRIVATE, SIGNAL_SLEEPS, &left);
	}
}

/* The locks in their order. */
enum {
	RANK_START = 1,
	RANK_LOAD = 2,
	RANK_CORE = 4,
	RANK_POOL = 8,
	RANK_INNER = 16
};

#ifdef RANK_ASSERTS
extern __thread unsigned rt_locks; /* ranks that this thread holds */
#endif

static inline void rt_assert_locked(unsigned rank)
{
	rank_assert_held(rt_locks, rank);
}

/* None of that rank or above. */
static inline void rt_assert_below(unsigned rank)
{
#ifdef RANK_ASSERTS
	rank_assert(rt_locks < rank);
#endif
}

static inline void mutex_take(pthread_mutex_t *mutex, unsigned rank)
{
	rank_take(rt_locks, rank);
	pthread_mutex_lock(mutex);
}

static inline void mutex_drop(pthread_mutex_t *mutex, unsigned rank)
{
	rank_drop(rt_locks, rank);
	pthread_mutex_unlock(mutex);
}

/*
 * A lock: free, taken, or taken and perhaps wanted by threads that sleep (the third
 * mutex of U. Drepper, "Futexes Are Tricky").
 */
enum { LOCK_FREE, LOCK_TAKEN, LOCK_WANTED };

static inline void lock_take(uint32_t *lock, unsigned rank)
{
	uint32_t free = LOCK_FREE;

	rank_take(rt_locks, rank);
	if (likely(at_cas(lock, &free, (uint32_t)LOCK_TAKEN)))
		return;
	while (at_swap(lock, (uint32_t)LOCK_WANTED) != LOCK_FREE)
		futex_sleep(lock, LOCK_WANTED);
}

static inline void lock_drop(uint32_t *lock, unsigned rank)
{
	rank_drop(rt_locks, rank);
	if (unlikely(at_swap(lock, (uint32_t)LOCK_FREE) == LOCK_WANTED))
		futex_wake(lock, 1);
}

#endif /* RUNTIME_ATOMIC_H */
