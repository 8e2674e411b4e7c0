/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fixed buffers of an io_uring, by system calls: liburing would be a dependency for three
 * calls.
 *
 * A call that pins pages holds the ring's lock, and every request of the ring waits.  So
 * pages are pinned for a scratch ring, which nobody uses.  Its buffers are then cloned
 * into the program's ring, which only takes a few references under the lock.  A scratch
 * ring lives for one call; making it takes some 50 us.
 *
 * Behaves badly with slots of a few pages: there is a call for 256 of them, and
 * cloning copies the table of the ring.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "common/struct_size.h"
#include "op.h"
#include "register_device.h"

#define SLOT_BYTES_MAX ((size_t)1 << 30)
/* Of one call, and of one scratch ring. */
#define BATCH_SLOTS 256u

/* Newer than the headers of many: 6.12, with offsets 6.13. */
#define REGISTER_CLONE_BUFFERS 30
#define CLONE_DST_REPLACE 0x2u

struct clone_buffers {
	uint32_t src_fd;
	uint32_t flags;
	uint32_t src_off;
	uint32_t dst_off;
	uint32_t nr;
	uint32_t pad[3];
};

static int call_register(int fd, unsigned code, const void *arg, unsigned nr)
{
	int result = (int)syscall(SYS_io_uring_register, fd, code, arg, nr);

	return result < 0 ? -errno : result;
}

static int make_ring(void)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	return fd < 0 ? -errno : fd;
}

/* What a closed ring had stays charged until the kernel comes to it. */
static void close_ring(int fd)
{
	call_register(fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
	close(fd);
}

static int clone_slots(int ring_fd, int scratch_fd, unsigned slot, unsigned nr)
{
	struct clone_buffers clone = {
		.src_fd = (uint32_t)scratch_fd,
		.flags = CLONE_DST_REPLACE,
		.dst_off = slot,
		.nr = nr,
	};

	return call_register(ring_fd, REGISTER_CLONE_BUFFERS, &clone, 1);
}

static int update_once(int ring_fd, unsigned slot, const struct iovec *parts,
		       unsigned nr)
{
	struct io_uring_rsrc_update2 update = {
		.offset = slot,
		.data = (uintptr_t)parts,
		.nr = nr,
	};

	return call_register(ring_fd, IORING_REGISTER_BUFFERS_UPDATE, &update,
			     sizeof(update));
}

static void empty_slots(int ring_fd, unsigned slot, unsigned nr)
{
	static const struct iovec nothing[BATCH_SLOTS];

	update_once(ring_fd, slot, nothing, nr);
}

/* It may end early, and says why if it is called for the next one. */
static int update_slots(int ring_fd, unsigned slot, const struct iovec *parts,
			unsigned nr)
{
	unsigned done = 0;

	while (done < nr) {
		int updated = update_once(ring_fd, slot + done, parts + done,
					  nr - done);

		if (updated <= 0) {
			if (done)
				empty_slots(ring_fd, slot, done);
			return updated ? updated : -EIO;
		}
		done += (unsigned)updated;
	}
	return 0;
}

static int add_by_scratch(int ring_fd, unsigned slot, const struct iovec *parts,
			  unsigned nr)
{
	int scratch_fd = make_ring();
	int error;

	if (scratch_fd < 0)
		return scratch_fd;
	error = call_register(scratch_fd, IORING_REGISTER_BUFFERS, parts, nr);
	if (!error)
		error = clone_slots(ring_fd, scratch_fd, slot, nr);
	if (error)
		close_ring(scratch_fd);
	else
		close(scratch_fd);
	return error;
}

static unsigned slot_of(const struct ktask_uring_buffers *buffers, char *pos)
{
	return buffers->first_slot +
	       (unsigned)((size_t)(pos - (char *)buffers->addr) /
			  buffers->slot_bytes);
}

/* Return: how many slots up to @end, one batch at most; *@pos behind them. */
static unsigned cut_slots(const struct ktask_uring_buffers *buffers,
			  struct iovec *parts, char **pos, char *end)
{
	unsigned nr = 0;

	while (nr < BATCH_SLOTS && *pos < end) {
		size_t left = (size_t)(end - *pos);
		size_t bytes =
			left < buffers->slot_bytes ? left : buffers->slot_bytes;

		parts[nr++] = (struct iovec){ *pos, bytes };
		*pos += bytes;
	}
	return nr;
}

static int take_slots(void *start, void *end, void *arg)
{
	const struct ktask_uring_buffers *buffers = arg;
	struct iovec parts[BATCH_SLOTS];
	char *pos = start;
	int error = 0;

	while (pos < (char *)end) {
		unsigned slot = slot_of(buffers, pos);
		unsigned nr = cut_slots(buffers, parts, &pos, end);
		int failed;

		memset(parts, 0, nr * sizeof(*parts));
		failed = update_slots(buffers->ring_fd, slot, parts, nr);
		error = error ? error : failed;
	}
	return error;
}

/* Of a batch of slots. */
typedef int (*add_batch_func)(int ring_fd, unsigned slot,
			      const struct iovec *parts, unsigned nr);

static int add_slots(char *start, char *end,
		     struct ktask_uring_buffers *buffers,
		     add_batch_func add_batch)
{
	struct iovec parts[BATCH_SLOTS];
	char *pos = start, *from = start;
	int error = 0;

	while (pos < end && !error) {
		unsigned nr;

		from = pos;
		nr = cut_slots(buffers, parts, &pos, end);
		error = add_batch(buffers->ring_fd, slot_of(buffers, from),
				  parts, nr);
	}
	if (error && from > start)
		take_slots(start, from, buffers);
	return error;
}

static int add_by_cloning(void *start, void *end, void *arg)
{
	return add_slots(start, end, arg, add_by_scratch);
}

static int add_by_updating(void *start, void *end, void *arg)
{
	return add_slots(start, end, arg, update_slots);
}

/* A page of the caller's stack, from a ring to a slot that is not the first. */
static bool can_clone(int scratch_fd)
{
	char byte;
	struct iovec parts[2] = { { &byte, 1 }, { &byte, 1 } };
	int ring_fd = make_ring();
	bool can;

	if (ring_fd < 0)
		return false;
	/* Of no ring at all -EINVAL means that the kernel cannot clone, -EBADF that it
	 * may.  The first costs nothing; a page that was pinned in vain takes older kernels
	 * milliseconds to give back. */
	can = clone_slots(ring_fd, -1, 1, 1) != -EINVAL &&
	      !call_register(scratch_fd, IORING_REGISTER_BUFFERS, parts, 1) &&
	      !call_register(ring_fd, IORING_REGISTER_BUFFERS, parts, 2) &&
	      !clone_slots(ring_fd, scratch_fd, 1, 1);
	close_ring(ring_fd);
	return can;
}

/* Return: whether the kernel clones buffers; -errno: there are no rings. */
static int probe_kernel(void)
{
	int scratch_fd = make_ring();
	bool can;

	if (scratch_fd < 0)
		return scratch_fd;
	can = can_clone(scratch_fd);
	close_ring(scratch_fd);
	return can;
}

static int prepare_uring(struct ktask_register_ctl *ctl,
			 struct ktask_uring_buffers *buffers)
{
	size_t least = STRUCT_SIZE_TO(struct ktask_uring_buffers, slot_bytes);
	int error = register_device_init(ctl, buffers, least, sizeof(*buffers),
					 add_by_updating, take_slots);
	int can;

	if (error)
		return error;
	if (!buffers->slot_bytes)
		buffers->slot_bytes = SLOT_BYTES_MAX;
	if (buffers->ring_fd < 0 || buffers->slot_bytes > SLOT_BYTES_MAX ||
	    buffers->slot_bytes % op_page_bytes())
		return -EINVAL;
	can = probe_kernel();
	if (can < 0)
		return can;
	if (can) {
		ctl->register_func = add_by_cloning;
		ctl->flags =
			KTASK_REGISTER_PARALLEL | KTASK_REGISTER_MAKES_PAGES;
	}
	ctl->unit_bytes = buffers->slot_bytes;
	return 0;
}

int ktask_register_uring(struct ktask_register_ctl *ctl,
			 struct ktask_uring_buffers *buffers)
{
	int saved_errno = errno;
	int error = prepare_uring(ctl, buffers);

	errno = saved_errno;
	return error;
}
