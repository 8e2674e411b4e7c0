/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See bpf_source.h.
 *
 * Behaves badly: if a umtd ends while all subscribers of a source have paused, these
 * cannot be resumed, because no process has the links any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf_source.h"
#include "subscriber.h"

static void close_all(int *fds, int nr)
{
	while (nr > 0)
		close(fds[--nr]);
}

void source_free(struct source *source)
{
	subscriber_assert_locked();
	if (source->connection >= 0)
		close(source->connection);
	if (source->control_fd >= 0)
		close(source->control_fd);
	close_all(source->links, source->nr_links);
	free(source);
}

/* Return: 0 if @fd is no socket. */
static ino_t socket_inode(int fd)
{
	struct stat file;

	return fstat(fd, &file) || !S_ISSOCK(file.st_mode) ? 0 : file.st_ino;
}

int source_connect(struct source **made)
{
	struct source *source;
	int fd = broker_connect();

	if (fd < 0)
		return fd;
	source = calloc(1, sizeof(*source));
	if (!source) {
		close(fd);
		return -ENOMEM;
	}
	source->connection = fd;
	source->inode = socket_inode(fd);
	source->control_fd = -1;
	*made = source;
	return 0;
}

static struct umt_ask new_ask(enum umt_broker_op op, unsigned int index)
{
	return (struct umt_ask){ .version = UMT_BROKER_VERSION,
				 .op = op,
				 .subscriber = index };
}

/* ---- links ---- */

static void keep_links(struct source *source, int *fds, int nr)
{
	subscriber_assert_locked();
	if (source->nr_links) {
		close_all(fds, nr);
		return;
	}
	source->nr_links = nr;
	for (int i = 0; i < nr; i++) {
		source->links[i] = fds[i];
		source->link_ids[i] = program_link_id(fds[i]);
	}
}

/* The program that uses the library may have closed these descriptors, and may have
 * opened others with the same numbers. */
static bool has_own_descriptors(const struct source *source)
{
	if (source->connection >= 0 &&
	    (!source->inode ||
	     socket_inode(source->connection) != source->inode))
		return false;
	for (int i = 0; i < source->nr_links; i++)
		if (!source->link_ids[i] ||
		    program_link_id(source->links[i]) != source->link_ids[i])
			return false;
	return true;
}

void source_drop_links(struct source *source)
{
	subscriber_assert_locked();
	if (source->nr_paused < source->nr_subscribers ||
	    !has_own_descriptors(source))
		return;
	close_all(source->links, source->nr_links);
	source->nr_links = 0;
}

int source_pause(struct source *source, unsigned int index, bool on)
{
	struct umt_ask ask =
		new_ask(on ? UMT_BROKER_PAUSE : UMT_BROKER_RESUME, index);
	int fds[UMT_BROKER_FDS_MAX], came;
	struct umt_answer answer;

	subscriber_assert_locked();
	if (!has_own_descriptors(source))
		return -EBADF;
	came = broker_ask(&source->connection, &ask, &answer, fds,
			  UMT_BROKER_FDS_MAX);
	/* The answer of a umtd that does not know this request. */
	if (came == -EINVAL)
		return -ENOTSUP;
	if (came < 0)
		return came;
	source->nr_paused += on ? 1 : -1;
	keep_links(source, fds, came);
	source_drop_links(source);
	return 0;
}

/* ---- subscribers ---- */

/* The source keeps the control descriptor and the links of its first subscriber. */
static void keep_fds(struct source *source, int *fds, int nr)
{
	if (source->control_fd >= 0)
		close(fds[UMT_FD_CONTROL]);
	else
		source->control_fd = fds[UMT_FD_CONTROL];
	keep_links(source, fds + UMT_FD_LINKS, nr - UMT_FD_LINKS);
}

int source_open(struct source *source, struct program_subscriber *made, int *nr,
		unsigned int flags, size_t ring_bytes)
{
	struct umt_ask ask = new_ask(UMT_BROKER_OPEN, 0);
	struct umt_answer answer;
	int fds[UMT_BROKER_FDS_MAX], came;

	ask.flags = flags;
	ask.ring_bytes = (__u32)ring_bytes;
	came = broker_ask(&source->connection, &ask, &answer, fds,
			  UMT_BROKER_FDS_MAX);
	if (came < 0)
		return came;
	if (came < UMT_FD_LINKS || !answer.nr_cores ||
	    answer.nr_cores > UINT16_MAX) {
		close_all(fds, came);
		return -EPROTO;
	}
	keep_fds(source, fds, came);
	*nr = (int)answer.nr_cores;
	made->index = answer.subscriber;
	memcpy(made->token, answer.token, sizeof(made->token));
	made->table_fd = fds[UMT_FD_TABLE];
	made->ring_fd = fds[UMT_FD_RING];
	return 0;
}

void source_close(struct source *source, unsigned int index)
{
	struct umt_ask ask = new_ask(UMT_BROKER_CLOSE, index);
	struct umt_answer answer;

	broker_ask(&source->connection, &ask, &answer, NULL, 0);
}

int source_doorbell(struct source *source, unsigned int index, int cpu)
{
	struct umt_ask ask = new_ask(UMT_BROKER_DOORBELL, index);
	struct umt_answer answer;
	int fd = -1, came;

	ask.cpu = (__u32)cpu;
	came = broker_ask(&source->connection, &ask, &answer, &fd, 1);
	if (came < 0)
		return came;
	return came ? fd : -EPROTO;
}
