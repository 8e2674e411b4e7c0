/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The backend that is served by the program in the kernel (umt.bpf.c): by
 * umtd's where there is a umtd, else by one that this process loads for its
 * first user and takes away with the last.
 *
 * Behaves badly: users that were opened before and after umtd was started
 * anew are served by two programs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "umt/shared.h"
#include "broker.h"
#include "program.h"
#include "rights.h"
#include "user.h"

/* Of which all but the first wait; half a second together. */
#define CONTROL_TRIES 600
#define CONTROL_QUICK_TRIES 100
#define CONTROL_NAP_US 1000

/* A program in the kernel, as we hold it. */
struct source {
	bool own; /* loaded here */
	int connection; /* to umtd; -1: it has ended, or own */
	int control_fd;
	int links[UMT_BROKER_FDS_MAX];
	int nr_links;
	unsigned int nr_users;
};

static struct source own = { .own = true, .connection = -1, .control_fd = -1 };

/* The umtd that new users are opened by; allocated. */
static struct source *present;

/* ---- umtd's ---- */

static void close_all(int *fds, int nr)
{
	while (nr > 0)
		close(fds[--nr]);
}

/* With its last user, and not before: the links keep the program attached. */
static void drop_source(struct source *source)
{
	if (source->connection >= 0)
		close(source->connection);
	if (source->control_fd >= 0)
		close(source->control_fd);
	close_all(source->links, source->nr_links);
	if (source == present)
		present = NULL;
	free(source);
}

static int connect_source(struct source **made)
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
	source->control_fd = -1;
	*made = source;
	return 0;
}

/* What came with the first user of a source is the source's. */
static void keep_fds(struct source *source, int *fds, int nr)
{
	if (source->control_fd >= 0) {
		close(fds[UMT_FD_CONTROL]);
		close_all(fds + UMT_FD_LINKS, nr - UMT_FD_LINKS);
		return;
	}
	source->control_fd = fds[UMT_FD_CONTROL];
	source->nr_links = nr - UMT_FD_LINKS;
	memcpy(source->links, fds + UMT_FD_LINKS,
	       (size_t)source->nr_links * sizeof(*fds));
}

static int ask_to_open(struct source *source, struct program_user *made,
		       int *nr, unsigned int flags, size_t ring_bytes)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION,
			       .op = UMT_BROKER_OPEN,
			       .flags = flags,
			       .ring_bytes = (__u32)ring_bytes };
	struct umt_answer answer;
	int fds[UMT_BROKER_FDS_MAX];
	int came = broker_ask(&source->connection, &ask, &answer, fds,
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
	made->index = answer.user;
	memcpy(made->token, answer.token, sizeof(made->token));
	made->table_fd = fds[UMT_FD_TABLE];
	made->ring_fd = fds[UMT_FD_RING];
	return 0;
}

/* A umtd that has ended is asked once; then whoever is there now. */
static int open_by_umtd(struct umt *user, struct program_user *made, int *nr,
			size_t ring_bytes)
{
	int error = -ENOENT, tries;

	if (user->flags & ~UMT_BROKER_FLAGS || ring_bytes > UMT_BROKER_RING_MAX)
		return -ENOTSUP;
	for (tries = 0; tries < 2; tries++) {
		if (!present && connect_source(&present))
			return -ENOENT;
		error = ask_to_open(present, made, nr, user->flags, ring_bytes);
		if (!error) {
			user->source = present;
			present->nr_users++;
			return 0;
		}
		if (!present->nr_users)
			drop_source(present);
		else if (present->connection < 0)
			present = NULL;
		else
			return error;
	}
	return error;
}

static int control(enum umt_op op, const struct umt *user)
{
	uint64_t args[UMT_NR_ARGS] = {
		[UMT_ARG_OP] = op,
		[UMT_ARG_USER] = user->index,
		[UMT_ARG_PROOF] = (uintptr_t)user->token,
		[UMT_ARG_TOKEN] = user->token[0],
		[UMT_ARG_TOKEN + 1] = user->token[1],
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args,
		    .ctx_size_in = sizeof(args));
	int error = bpf_prog_test_run_opts(user->source->control_fd, &opts);

	return error ? error : (int)opts.retval;
}

/*
 * The kernel may be at another record of this CPU just now, or another CPU at
 * the slab that the record is to come from: in a guest perhaps one that waits
 * for its turn.  And the page of the token may be on its way elsewhere.
 */
static int control_surely(enum umt_op op, const struct umt *user)
{
	int error, tries;

	for (tries = 0; tries < CONTROL_TRIES; tries++) {
		error = control(op, user);
		if (error != -EAGAIN)
			break;
		if (tries < CONTROL_QUICK_TRIES)
			sched_yield();
		else
			usleep(CONTROL_NAP_US);
	}
	return error;
}

/* From now on it is this process's; where we may not, we find out. */
static int first_use(const struct umt *user)
{
	int error = control_surely(UMT_OP_REMOVE, user);

	return error == -ENOENT ? 0 : error;
}

/*
 * Asked for a user, and tried: behind systemd's socket there need not be
 * anybody, and before Linux 5.19 what is handed out may be of no use.
 *
 * Return: 0, -ENOENT where there is none, or why it does not serve; @hint,
 * behind that
 */
static int ask_umtd(const char **hint)
{
	struct source *source;
	struct program_user made;
	struct umt user;
	int nr, error;

	*hint = "";
	error = connect_source(&source);
	if (error)
		return error;
	error = ask_to_open(source, &made, &nr, 0,
			    (size_t)sysconf(_SC_PAGESIZE));
	if (!error) {
		close(made.table_fd);
		close(made.ring_fd);
		user.source = source;
		user.index = made.index;
		memcpy(user.token, made.token, sizeof(user.token));
		error = first_use(&user);
		if (error == -EPERM)
			*hint = " (kernel.unprivileged_bpf_disabled)";
	}
	drop_source(source);
	return error;
}

/* ---- our own ---- */

static int load(char why[WHY_MAX])
{
	int error = program_load(why, WHY_MAX);

	/* Threads of its users read it, without the lock. */
	if (!error && own.control_fd < 0)
		own.control_fd = program_control_fd();
	return error;
}

static int open_own(struct umt *user, struct program_user *made, int *nr,
		    size_t ring_bytes)
{
	char why[WHY_MAX];
	int error = load(why);

	if (error)
		return error;
	user->source = &own;
	own.nr_users++;
	*nr = program_nr_cores();
	return program_user_open(made, user->flags, ring_bytes);
}

static void put_source(struct source *source)
{
	if (--source->nr_users)
		return;
	if (!source->own) {
		drop_source(source);
		return;
	}
	own.control_fd = -1;
	program_unload();
}

/* Who may not load the program had better know of the other way. */
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
			 "; at most %d users and %u MiB of events for this "
			 "user id",
			 UMT_BROKER_USERS_EACH, UMT_BROKER_RINGS_EACH >> 20);
}

static int probe(char why[WHY_MAX], char note[WHY_MAX])
{
	const char *hint = "";
	int error, refused;

	user_lock();
	refused = present ? 0 : ask_umtd(&hint);
	if (!refused) {
		note_umtd(note);
		user_unlock();
		return 0;
	}
	error = load(why);
	if (error == -EPERM || error == -EACCES)
		add_umtd(refused, hint, why);
	if (!error && !own.nr_users) {
		own.control_fd = -1;
		program_unload();
	}
	user_unlock();
	return error;
}

/* ---- a user ---- */

static int map_table(struct umt *user, int fd, int nr)
{
	void *memory = mmap(NULL, user_table_bytes(nr), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	user->word = memory;
	user->cores = (struct umt_core *)memory + 1;
	return 0;
}

/* Takes the descriptors over, also when it fails. */
static int take_over(struct umt *user, struct program_user *made, int nr,
		     size_t ring_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int error;

	if (ring_bytes < page)
		ring_bytes = page;
	user->index = made->index;
	memcpy(user->token, made->token, sizeof(user->token));
	error = ring_open(&user->events, made->ring_fd, ring_bytes);
	if (error)
		close(made->ring_fd);
	if (!error)
		error = user_cores_alloc(user, nr);
	if (!error)
		error = map_table(user, made->table_fd, nr);
	close(made->table_fd);
	if (error)
		return error;
	user->bells = calloc((size_t)nr, sizeof(*user->bells));
	if (!user->bells)
		return -ENOMEM;
	user->word->wake_bytes = (uint32_t)(ring_bytes / 4);
	user->fd = user->events.fd;
	return 0;
}

static int bpf_open(struct umt *user, size_t ring_bytes)
{
	struct program_user made;
	int nr = 0;
	int error;

	user->index = UMT_USERS;
	error = open_by_umtd(user, &made, &nr, ring_bytes);
	if (error && error != -EUSERS)
		error = open_own(user, &made, &nr, ring_bytes);
	if (!error)
		error = take_over(user, &made, nr, ring_bytes);
	if (error)
		return error;
	return first_use(user);
}

static void ask_to_close(struct umt *user)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION,
			       .op = UMT_BROKER_CLOSE,
			       .user = user->index };
	struct umt_answer answer;

	broker_ask(&user->source->connection, &ask, &answer, NULL, 0);
}

static void close_rings(struct umt *user)
{
	int cpu;

	for (cpu = 0; user->bells && cpu < user->nr_cores; cpu++)
		ring_close(&user->bells[cpu]);
	free(user->bells);
	user->bells = NULL;
	ring_close(&user->events);
}

/* With its table gone the program drops the user's threads one by one. */
static void bpf_close(struct umt *user)
{
	if (!user->source)
		return;
	if (user->index < UMT_USERS && user->source->own)
		program_user_close(user->index);
	else if (user->index < UMT_USERS)
		ask_to_close(user);
	close_rings(user);
	user_unmap(user);
	put_source(user->source);
}

static int bpf_add(struct umt *user)
{
	int saved = errno;
	int error = control_surely(UMT_OP_ADD, user);

	errno = saved;
	return error == -EAGAIN ? -ENOMEM : error;
}

static int bpf_remove(struct umt *user)
{
	int saved = errno;
	int error = control_surely(UMT_OP_REMOVE, user);

	errno = saved;
	return error;
}

int bpf_attach(struct umt *user, int tid)
{
	struct program_user made = { .index = user->index };
	int error;

	if (!user->source->own)
		return -EPERM;
	user_lock();
	error = program_attach(&made, tid, user->flags & UMT_TRACE);
	user_unlock();
	return error;
}

static int bpf_next(struct umt *user, struct umt_event *event)
{
	return ring_next(&user->events, event, sizeof(*event));
}

static int ask_for_bell(struct umt *user, int cpu)
{
	struct umt_ask ask = { .version = UMT_BROKER_VERSION,
			       .op = UMT_BROKER_BELL,
			       .user = user->index,
			       .cpu = (__u32)cpu };
	struct umt_answer answer;
	int fd = -1;
	int came = broker_ask(&user->source->connection, &ask, &answer, &fd, 1);

	if (came < 0)
		return came;
	return came ? fd : -EPROTO;
}

static int bpf_core_fd(struct umt *user, int cpu)
{
	struct ring *bell = &user->bells[cpu];
	int fd, error;

	fd = user->source->own ? program_bell(user->index, cpu, false)
			       : ask_for_bell(user, cpu);
	if (fd < 0)
		return fd;
	error = ring_open(bell, fd, (size_t)sysconf(_SC_PAGESIZE));
	if (error) {
		close(fd);
		return error;
	}
	ring_drain(bell);
	return bell->fd;
}

static void bpf_quiet(struct umt *user, int cpu)
{
	if (user->bells)
		ring_drain(&user->bells[cpu]);
}

/*
 * Closing descriptors takes nothing away from the parent.  The table stays
 * mapped: a pointer from umt_cores() may be in use.
 */
static void bpf_child(struct umt *user)
{
	close_rings(user);
	put_source(user->source);
}

const struct backend bpf_backend = {
	.id = UMT_BPF,
	.probe = probe,
	.open = bpf_open,
	.close = bpf_close,
	.add = bpf_add,
	.remove = bpf_remove,
	.next = bpf_next,
	.core_fd = bpf_core_fd,
	.quiet = bpf_quiet,
	.child = bpf_child,
};
