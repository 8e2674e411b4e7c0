/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which access the kernel's mlock would make pages for: it writes to private
 * writable mappings and reads all others.  The two differ for good (writing to
 * a shared file mapping makes the whole file dirty; reading private memory
 * only finds the zero page), so the mappings are looked up in
 * /proc/self/maps, without allocating, and by system call: open() and read()
 * are cancellation points, mlock() is none.
 *
 * Behaves badly in processes with tens of thousands of mappings: the list is
 * read from its start, some microseconds per hundred.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "shim.h"

struct scanner {
	int fd;
	size_t pos;
	size_t len;
	char buf[4096];
};

struct mapping {
	uintptr_t start;
	uintptr_t end;
	char perms[4];
};

/* The next character, or -1 at the end. */
static int next_char(struct scanner *s)
{
	if (s->pos == s->len) {
		long got = syscall(SYS_read, s->fd, s->buf, sizeof(s->buf));

		if (got <= 0)
			return -1;
		s->pos = 0;
		s->len = (size_t)got;
	}
	return (unsigned char)s->buf[s->pos++];
}

/* A hexadecimal number and the one character behind it. */
static bool next_hex(struct scanner *s, uintptr_t *value)
{
	int c = next_char(s);

	for (*value = 0; c >= 0; c = next_char(s)) {
		if (c >= '0' && c <= '9')
			*value = *value * 16 + (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value * 16 + (uintptr_t)(c - 'a' + 10);
		else
			return true;
	}
	return false;
}

static bool next_mapping(struct scanner *s, struct mapping *m)
{
	int c;

	if (!next_hex(s, &m->start) || !next_hex(s, &m->end))
		return false;
	for (int i = 0; i < 4; i++)
		m->perms[i] = (char)next_char(s);
	do
		c = next_char(s);
	while (c >= 0 && c != '\n');
	return c == '\n';
}

static int mapping_access(const struct mapping *m)
{
	if (m->perms[0] != 'r')
		return -1;
	if (m->perms[1] == 'w' && m->perms[3] == 'p')
		return 0;
	return KTASK_POPULATE_READ;
}

static int scan(struct scanner *s, uintptr_t pos, uintptr_t end)
{
	struct mapping m;
	int access = -1;

	while (pos < end) {
		if (!next_mapping(s, &m) || m.start > pos)
			return -1;
		if (m.end <= pos)
			continue;
		if (access >= 0 && mapping_access(&m) != access)
			return -1;
		access = mapping_access(&m);
		if (access < 0)
			return -1;
		pos = m.end;
	}
	return access;
}

int shim_access(const void *addr, size_t len)
{
	struct scanner s = { .pos = 0 };
	int saved_errno = errno;
	int access = -1;

	s.fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
			    O_RDONLY | O_CLOEXEC);
	if (s.fd >= 0) {
		access = scan(&s, (uintptr_t)addr, (uintptr_t)addr + len);
		syscall(SYS_close, s.fd);
	}
	errno = saved_errno;
	return access;
}
