/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The backend that uses the program in the kernel (umt.bpf.c).  If there is a umtd, the
 * program is umtd's.  Else this process loads one for its first subscriber, and unloads
 * it with the last.
 *
 * Behaves badly: when umtd is restarted, subscribers from before and after are served
 * by two programs.
 *
 * Locking: bpf_source.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ebpf/shared.h"
#include "bpf_source.h"
#include "rights.h"
#include "subscriber.h"

/* There is a pause before each try but the first: half a second in all. */
#define CONTROL_TRIES 600
#define CONTROL_QUICK_TRIES 100
#define CONTROL_NAP_US 1000

static struct source own_source = { .own = true,
				    .connection = -1,
				    .control_fd = -1 };

/* The umtd that opens new subscribers; allocated; S */
static struct source *current_source;

/* ---- umtd's ---- */

static void drop_source(struct source *source)
{
	if (source == current_source)
		current_source = NULL;
	source_free(source);
}

/* If the umtd has ended, one request to it fails.  Then the umtd that runs now is asked. */
static int open_by_umtd(struct umt *subscriber, struct program_subscriber *made,
			int *nr, size_t ring_bytes)
{
	int error = -ENOENT, tries;

	subscriber_assert_locked();
	if (subscriber->flags & ~UMT_BROKER_FLAGS ||
	    ring_bytes > UMT_BROKER_RING_MAX)
		return -ENOTSUP;
	for (tries = 0; tries < 2; tries++) {
		if (!current_source && source_connect(&current_source))
			return -ENOENT;
		error = source_open(current_source, made, nr, subscriber->flags,
				    ring_bytes);
		if (!error) {
			subscriber->source = current_source;
			current_source->nr_subscribers++;
			return 0;
		}
		if (!current_source->nr_subscribers)
			drop_source(current_source);
		else if (current_source->connection < 0)
			current_source = NULL;
		else
			return error;
	}
	return error;
}

static int call_control(enum umt_op op, const struct umt *subscriber)
{
	uint64_t args[UMT_NR_ARGS] = {
		[UMT_ARG_OP] = op,
		[UMT_ARG_SUBSCRIBER] = subscriber->index,
		[UMT_ARG_PROOF] = (uintptr_t)subscriber->token,
		[UMT_ARG_TOKEN] = subscriber->token[0],
		[UMT_ARG_TOKEN + 1] = subscriber->token[1],
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args,
		    .ctx_size_in = sizeof(args));
	int error =
		bpf_prog_test_run_opts(subscriber->source->control_fd, &opts);

	return error ? error : (int)opts.retval;
}

/*
 * Tries again on -EAGAIN.  The kernel may be busy with another record of this CPU.
 * Another CPU, perhaps a virtual one that is preempted, may be allocating from the same
 * slab.  Or the page of the token is being migrated.
 */
static int control_surely(enum umt_op op, const struct umt *subscriber)
{
	int error, tries;

	for (tries = 0; tries < CONTROL_TRIES; tries++) {
		error = call_control(op, subscriber);
		if (error != -EAGAIN)
			break;
		if (tries < CONTROL_QUICK_TRIES)
			sched_yield();
		else
			usleep(CONTROL_NAP_US);
	}
	return error;
}

/* Ties the subscriber to this process, and finds out whether the process may use it. */
static int first_use(const struct umt *subscriber)
{
	int error = control_surely(UMT_OP_REMOVE, subscriber);

	return error == -ENOENT ? 0 : error;
}

/*
 * Opens a subscriber at umtd and tries it.  A connection alone proves nothing: systemd
 * may hold the socket of a umtd that does not start, and before Linux 5.19 this process
 * may not be allowed to use the descriptors.
 *
 * Return: 0; -ENOENT if there is no umtd; why it does not serve, with @hint to follow
 */
static int ask_umtd(const char **hint)
{
	struct source *source;
	struct program_subscriber made;
	struct umt subscriber;
	int nr, error;

	*hint = "";
	error = source_connect(&source);
	if (error)
		return error;
	error = source_open(source, &made, &nr, 0,
			    (size_t)sysconf(_SC_PAGESIZE));
	if (!error) {
		close(made.table_fd);
		close(made.ring_fd);
		subscriber.source = source;
		subscriber.index = made.index;
		memcpy(subscriber.token, made.token, sizeof(subscriber.token));
		error = first_use(&subscriber);
		if (error == -EPERM)
			*hint = " (kernel.unprivileged_bpf_disabled)";
	}
	drop_source(source);
	return error;
}

/* ---- our own ---- */

static int load_program(char why[WHY_MAX])
{
	int error;

	subscriber_assert_locked();
	error = program_load(why, WHY_MAX);
	/* Threads of its subscribers read it, without the lock. */
	if (!error && own_source.control_fd < 0)
		own_source.control_fd = program_control_fd();
	return error;
}

static int open_own(struct umt *subscriber, struct program_subscriber *made,
		    int *nr, size_t ring_bytes)
{
	char why[WHY_MAX];
	int error = load_program(why);

	if (!error)
		error = program_watch(true);
	if (error)
		return error;
	subscriber->source = &own_source;
	own_source.nr_subscribers++;
	*nr = program_nr_cores();
	return program_subscriber_open(made, subscriber->flags, ring_bytes);
}

/* Detach once every open subscriber has paused. */
static int detach_if_all_paused(void)
{
	subscriber_assert_locked();
	return own_source.nr_paused == own_source.nr_subscribers
		       ? program_watch(false)
		       : 0;
}

static int pause_own(bool on)
{
	int error;

	own_source.nr_paused += on ? 1 : -1;
	error = on ? detach_if_all_paused() : program_watch(true);
	if (error)
		own_source.nr_paused -= on ? 1 : -1;
	return error;
}

static int bpf_pause(struct umt *subscriber, bool on)
{
	struct source *source = subscriber->source;
	int error;

	if (subscriber->paused == on)
		return 0;
	error = source->own ? pause_own(on)
			    : source_pause(source, subscriber->index, on);
	if (!error)
		subscriber->paused = on;
	return error;
}

/* The subscriber no longer counts.  Perhaps all others have paused. */
static void put_source(struct source *source)
{
	subscriber_assert_locked();
	if (--source->nr_subscribers) {
		if (source->own)
			detach_if_all_paused();
		else
			source_drop_links(source);
		return;
	}
	if (!source->own) {
		drop_source(source);
		return;
	}
	own_source.control_fd = -1;
	program_unload();
}

/* Tell a process that may not load the program that umtd would do it. */
static void add_umtd(int error, const char *hint, char why[WHY_MAX])
{
	const char *path = broker_path();
	size_t used = strlen(why);

	if (!path)
		return;
	if (error == -ENOENT)
		snprintf(why + used, WHY_MAX - used, "; no umtd at %s", path);
	else
		snprintf(why, WHY_MAX, "umtd at %s: %s%s", path,
			 strerror(-error), hint);
}

static void note_umtd(char note[WHY_MAX])
{
	size_t used;

	snprintf(note, WHY_MAX, "by umtd at %s", broker_path());
	used = strlen(note);
	if (!rights_of_root())
		snprintf(note + used, WHY_MAX - used,
			 "; at most %d subscribers and %u MiB of events for "
			 "this "
			 "user id",
			 UMT_BROKER_SUBSCRIBERS_EACH,
			 UMT_BROKER_RINGS_EACH >> 20);
}

static int probe_bpf(char why[WHY_MAX], char note[WHY_MAX])
{
	const char *hint = "";
	int error, refused;

	subscriber_lock();
	refused = current_source ? 0 : ask_umtd(&hint);
	if (!refused) {
		note_umtd(note);
		subscriber_unlock();
		return 0;
	}
	error = load_program(why);
	if (error == -EPERM || error == -EACCES)
		add_umtd(refused, hint, why);
	if (!error && !own_source.nr_subscribers) {
		own_source.control_fd = -1;
		program_unload();
	}
	subscriber_unlock();
	return error;
}

/* ---- a subscriber ---- */

static int map_table(struct umt *subscriber, int fd, int nr)
{
	void *memory = mmap(NULL, subscriber_table_bytes(nr),
			    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	subscriber->word = memory;
	subscriber->cores = (struct umt_core *)memory + 1;
	return 0;
}

/* Takes the descriptors over, also when it fails. */
static int take_over(struct umt *subscriber, struct program_subscriber *made,
		     int nr, size_t ring_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int error;

	if (ring_bytes < page)
		ring_bytes = page;
	subscriber->index = made->index;
	memcpy(subscriber->token, made->token, sizeof(subscriber->token));
	error = ring_open(&subscriber->events, made->ring_fd, ring_bytes);
	if (error)
		close(made->ring_fd);
	if (!error)
		error = subscriber_cores_alloc(subscriber, nr);
	if (!error)
		error = map_table(subscriber, made->table_fd, nr);
	close(made->table_fd);
	if (error)
		return error;
	subscriber->doorbells =
		calloc((size_t)nr, sizeof(*subscriber->doorbells));
	if (!subscriber->doorbells)
		return -ENOMEM;
	subscriber->word->wake_bytes = (uint32_t)(ring_bytes / 4);
	subscriber->fd = subscriber->events.fd;
	return 0;
}

static int bpf_open(struct umt *subscriber, size_t ring_bytes)
{
	struct program_subscriber made;
	int nr = 0;
	int error;

	subscriber->index = UMT_SUBSCRIBERS;
	error = open_by_umtd(subscriber, &made, &nr, ring_bytes);
	if (error && error != -EUSERS)
		error = open_own(subscriber, &made, &nr, ring_bytes);
	if (!error)
		error = take_over(subscriber, &made, nr, ring_bytes);
	if (error)
		return error;
	return first_use(subscriber);
}

static void close_rings(struct umt *subscriber)
{
	int cpu;

	for (cpu = 0; subscriber->doorbells && cpu < subscriber->nr_cores;
	     cpu++)
		ring_close(&subscriber->doorbells[cpu]);
	free(subscriber->doorbells);
	subscriber->doorbells = NULL;
	ring_close(&subscriber->events);
}

/* With its table gone the program drops the subscriber's threads one by one. */
static void bpf_close(struct umt *subscriber)
{
	if (!subscriber->source)
		return;
	if (subscriber->index < UMT_SUBSCRIBERS && subscriber->source->own)
		program_subscriber_close(subscriber->index);
	else if (subscriber->index < UMT_SUBSCRIBERS)
		source_close(subscriber->source, subscriber->index);
	close_rings(subscriber);
	subscriber_unmap(subscriber);
	subscriber->source->nr_paused -= subscriber->paused;
	put_source(subscriber->source);
}

static int bpf_add(struct umt *subscriber)
{
	int saved = errno;
	int error = control_surely(UMT_OP_ADD, subscriber);

	errno = saved;
	return error == -EAGAIN ? -ENOMEM : error;
}

static int bpf_remove(struct umt *subscriber)
{
	int saved = errno;
	int error = control_surely(UMT_OP_REMOVE, subscriber);

	errno = saved;
	return error;
}

int bpf_attach(struct umt *subscriber, int tid)
{
	struct program_subscriber made = { .index = subscriber->index };
	int error;

	if (!subscriber->source->own)
		return -EPERM;
	subscriber_lock();
	error = program_attach(&made, tid, subscriber->flags & UMT_TRACE);
	subscriber_unlock();
	return error;
}

static int bpf_next(struct umt *subscriber, struct umt_event *event)
{
	return ring_next(&subscriber->events, event, sizeof(*event));
}

static int bpf_core_fd(struct umt *subscriber, int cpu)
{
	struct ring *doorbell = &subscriber->doorbells[cpu];
	int fd, error;

	subscriber_assert_locked();
	fd = subscriber->source->own
		     ? program_doorbell(subscriber->index, cpu, false)
		     : source_doorbell(subscriber->source, subscriber->index,
				       cpu);
	if (fd < 0)
		return fd;
	error = ring_open(doorbell, fd, (size_t)sysconf(_SC_PAGESIZE));
	if (error) {
		close(fd);
		return error;
	}
	ring_drain(doorbell);
	return doorbell->fd;
}

static void bpf_drain(struct umt *subscriber, int cpu)
{
	if (subscriber->doorbells)
		ring_drain(&subscriber->doorbells[cpu]);
}

/*
 * Closing the descriptors does not affect the parent.  The table stays mapped, because a
 * pointer from umt_cores() may be in use.
 */
static void bpf_child(struct umt *subscriber)
{
	close_rings(subscriber);
	subscriber->source->nr_paused -= subscriber->paused;
	put_source(subscriber->source);
}

const struct backend bpf_backend = {
	.id = UMT_BPF,
	.probe = probe_bpf,
	.open = bpf_open,
	.close = bpf_close,
	.add = bpf_add,
	.remove = bpf_remove,
	.pause = bpf_pause,
	.next = bpf_next,
	.core_fd = bpf_core_fd,
	.drain = bpf_drain,
	.child = bpf_child,
};
