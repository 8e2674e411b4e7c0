/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory whose missing pages are asked for through a userfaultfd, and contents that
 * tell their place.  Needs ktest.h before it.
 */
#ifndef TEST_UFFD_H
#define TEST_UFFD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <ktask/uffd.h>

#include "pages.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* uffd_open - -1 where there is none to be had */
static inline int uffd_open(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static inline bool uffd_register(int fd, char *at, size_t len)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)at, len },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return !ioctl(fd, UFFDIO_REGISTER, &range);
}

/* uffd_waits - somebody waits for a page; waits for that, not for ever */
static inline bool uffd_waits(int fd)
{
	struct pollfd waits = { .fd = fd, .events = POLLIN };

	return poll(&waits, 1, 30000) == 1;
}

/* The word at @offset of the source. */
static inline uint64_t uffd_word(uint64_t offset)
{
	return offset * 0x9e3779b97f4a7c15ull + 1;
}

static inline void uffd_words(void *buf, size_t len, uint64_t offset)
{
	uint64_t *words = buf;

	for (size_t i = 0; i < len / 8; i++)
		words[i] = uffd_word(offset + i * 8);
}

/* uffd_wrong - the first byte that is not as in the source; SIZE_MAX: none */
static inline size_t uffd_wrong(const char *at, size_t len, uint64_t offset)
{
	const uint64_t *words = (const uint64_t *)at;

	for (size_t i = 0; i < len / 8; i++)
		if (words[i] != uffd_word(offset + i * 8))
			return i * 8;
	return SIZE_MAX;
}

/* uffd_image - a file with the source's first @len bytes */
static inline int uffd_image(size_t len)
{
	int fd = memory_file(len);
	char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	uffd_words(at, len, 0);
	munmap(at, len);
	return fd;
}

#define need_uffd()                                                   \
	do {                                                          \
		int need_fd = uffd_open(0);                           \
                                                                      \
		if (need_fd < 0)                                      \
			ktest_skip("no userfaultfd is to be had: %s", \
				   strerror(errno));                  \
		close(need_fd);                                       \
	} while (0)

#endif /* TEST_UFFD_H */
