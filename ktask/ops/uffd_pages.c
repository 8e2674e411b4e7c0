/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes pages through a userfaultfd: in the background, and for threads that wait for
 * one.
 *
 * A page that a thread waits for is copied alone.  Then the pages behind it in its block
 * are copied, since the thread probably reads on.  Any page may be present already.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uffd_job.h"

#define NR_MESSAGES 16

/* Pages behind one that is waited for, up to a multiple of this. */
#define AROUND_BYTES (32 * KIB)

/* While memory moves: its event ends the job, if somebody reads it. */
#define MAX_TRIES 10000

static int call_uffd(const struct uffd_job *uffd, unsigned long code, void *arg)
{
	/* Past the C library, whose function the preload shim takes over. */
	return syscall(SYS_ioctl, uffd->fill->uffd, code, arg) ? -errno : 0;
}

static void wake_page(const struct uffd_job *uffd, uintptr_t addr)
{
	struct uffdio_range range = { addr, uffd->page_bytes };

	call_uffd(uffd, UFFDIO_WAKE, &range);
}

/* Return: 0, with *@done bytes further; -errno: the next page cannot be made. */
static int copy_once(struct uffd_job *uffd, const char *buf, uintptr_t addr,
		     size_t len, size_t *done)
{
	struct uffdio_copy copy = {
		.dst = addr,
		.src = (uintptr_t)buf,
		.len = len,
	};
	int error = call_uffd(uffd, UFFDIO_COPY, &copy);

	if (!error || copy.copy > 0) {
		*done = error ? (size_t)copy.copy : len;
		return 0;
	}
	if (error != -EEXIST)
		return error;
	/* A thread may have begun to wait just before the page was made. */
	wake_page(uffd, addr);
	*done = uffd->page_bytes;
	return 0;
}

int uffd_copy(struct uffd_job *uffd, const char *buf, uint64_t offset,
	      size_t len, uint64_t *failed)
{
	uintptr_t addr = (uintptr_t)uffd->fill->addr + offset;
	size_t done = 0;
	unsigned tries = 0;

	while (done < len) {
		size_t more;
		int error = copy_once(uffd, buf + done, addr + done, len - done,
				      &more);

		if (error == -EAGAIN && tries++ < MAX_TRIES && !uffd->error) {
			sched_yield();
			continue;
		}
		if (error) {
			*failed = offset + done;
			return error;
		}
		done += more;
	}
	return 0;
}

static int serve_page(struct uffd_job *uffd, const struct files_buffer *buffer,
		      uint64_t offset, uint64_t *failed)
{
	size_t page = uffd->page_bytes, behind, came;
	int error;

	*failed = offset;
	error = uffd_source_read(uffd, buffer->at, page, offset, &came);
	if (!error)
		error = uffd_copy(uffd, buffer->at, offset, page, failed);
	if (error)
		return error;
	offset += page;
	behind = -offset & (AROUND_BYTES - 1);
	if (behind > uffd->job->len - offset)
		behind = uffd->job->len - offset;
	if (!behind || behind > buffer->len)
		return 0;
	/* Pages that cannot be read now are left for later. */
	uffd_source_read(uffd, buffer->at, behind, offset, &came);
	return uffd_copy(uffd, buffer->at, offset, came & ~(page - 1), failed);
}

static int serve_message(struct uffd_job *uffd,
			 const struct files_buffer *buffer,
			 const struct uffd_msg *message, uint64_t *failed)
{
	uintptr_t addr = (uintptr_t)message->arg.pagefault.address &
			 ~(uintptr_t)(uffd->page_bytes - 1);
	uint64_t offset = addr - (uintptr_t)uffd->fill->addr;
	int error;

	if (message->event == UFFD_EVENT_FORK)
		close((int)message->arg.fork.ufd);
	if (message->event != UFFD_EVENT_PAGEFAULT)
		return -EOPNOTSUPP;
	if (offset >= uffd->job->len) {
		/* It asks again, of whoever reads then. */
		wake_page(uffd, addr);
		return -ERANGE;
	}
	/* In a stream its turn comes. */
	if (uffd->fill->flags & KTASK_UFFD_STREAM)
		return 0;
	error = serve_page(uffd, buffer, offset, failed);
	uffd->faulted_ns = op_now_ns();
	return error;
}

int uffd_serve(struct uffd_job *uffd, const struct files_buffer *buffer,
	       uint64_t *failed)
{
	struct uffd_msg messages[NR_MESSAGES];
	ssize_t got = read(uffd->fill->uffd, messages, sizeof(messages));
	int error = 0;

	/* EAGAIN: nobody waits.  Else nobody can: copying tells why. */
	for (ssize_t i = 0; !error && i < got / (ssize_t)sizeof(*messages); i++)
		error = serve_message(uffd, buffer, &messages[i], failed);
	return error;
}
