/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Refuses one chosen allocation of the code under test.  Owns: counting and
 * failing malloc, calloc, realloc, aligned_alloc, posix_memalign, mmap and
 * pthread_create where the objects of the test and of libktask.a call them
 * (the linker's --wrap, set in mk/check.mk).  Does not see what libc and
 * other shared libraries allocate inside: the stack that pthread_create maps,
 * the buffer of fopen, a string of strdup.
 *
 * The usual test lets every allocation fail once, in turn:
 *
 *	unsigned nth = 0;
 *	int failed;
 *
 *	do {
 *		failalloc_arm(++nth);
 *		error = ktask_start(&job, ...);
 *		failed = failalloc_disarm();
 *		assert_true(error == 0 || (failed && error == -ENOMEM));
 *		...
 *	} while (failed);
 *
 * It ends because a call with n allocations does not reach number n + 1.
 * Allocations that are made only once in a process (a pool, a table) are
 * reached each in a process of its own: see ktest_in_child().
 *
 * Behaves badly when other threads allocate meanwhile: the count is the
 * process's, so that helpers are counted too, in no fixed order.  Arm and
 * disarm from one thread at a time.
 */
#ifndef FAILALLOC_H
#define FAILALLOC_H

#define FAILALLOC_MEMORY 0x1u /* -> NULL and ENOMEM */
#define FAILALLOC_MMAP 0x2u /* -> MAP_FAILED and ENOMEM */
#define FAILALLOC_THREAD 0x4u /* pthread_create -> EAGAIN */
#define FAILALLOC_ALL 0x7u

/* failalloc_arm - let the @nth allocation from now on fail; 1 is the next */
void failalloc_arm(unsigned nth);

/* failalloc_arm_for - the same, counting and failing only these @kinds */
void failalloc_arm_for(unsigned nth, unsigned kinds);

/* failalloc_arm_from - the @nth and every later one of these @kinds fails */
void failalloc_arm_from(unsigned nth, unsigned kinds);

/*
 * failalloc_disarm - let everything succeed again
 *
 * Return: how many allocations were refused since arming.
 */
unsigned failalloc_disarm(void);

/* failalloc_seen - allocations of these kinds since arming, refused or not */
unsigned failalloc_seen(void);

#endif /* FAILALLOC_H */
