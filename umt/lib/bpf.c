/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The backend that loads umt.bpf.c.  One instance serves all users of the
 * process: loaded for the first, taken away with the last, and by the kernel
 * whenever the process ends, for everything hangs on its descriptors.
 *
 * Owns the program's tables and which numbers of users are taken.  Does not
 * own the counts: the kernel writes them.
 *
 * Behaves badly: each process that uses it adds its own program to every
 * context switch and wakeup of the machine, some 50 nanoseconds each.  Descriptors for single
 * cores of a closed user are kept for the next one, since taking one out of
 * the kernel's table waits for all CPUs each time.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <umt.skel.h>

#include "umt/shared.h"
#include "user.h"

#define ADD_TRIES 1000

static struct umt_bpf *program;
static unsigned int nr_users;
static int nr_cores;
static bool taken[UMT_USERS];
static int64_t *seats;

/* A thread adds itself at any time: only this is read without the lock. */
static int control_fd = -1;

/* Rings of single cores, kept: [user * nr_cores + cpu]. */
static struct ring *bells;

static int silent(enum libbpf_print_level level, const char *format,
		  va_list args)
{
	return 0;
}

/* ---- what the running kernel must have ---- */

static bool is_task(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const char *name;

	if (!type || !btf_is_ptr(type))
		return false;
	type = btf__type_by_id(btf, type->type);
	name = type ? btf__name_by_offset(btf, type->name_off) : NULL;
	return name && btf_is_struct(type) && !strcmp(name, "task_struct");
}

/* The typedef is of a pointer to a function: (void *, bool, prev, next...). */
static bool switch_is_as_we_read_it(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch",
					BTF_KIND_TYPEDEF);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_param *params;

	type = type ? btf__type_by_id(btf, type->type) : NULL;
	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type)
					: NULL;
	if (!type || !btf_is_func_proto(type) || btf_vlen(type) < 4)
		return false;
	params = btf_params(type);
	return !is_task(btf, params[1].type) && is_task(btf, params[2].type) &&
	       is_task(btf, params[3].type);
}

static int check_kernel(char why[WHY_MAX])
{
	struct btf *btf = btf__load_vmlinux_btf();
	int error = 0;

	if (!btf) {
		error = -errno;
		snprintf(why, WHY_MAX, "no type information of the kernel: %s",
			 strerror(-error));
		return error;
	}
	if (!switch_is_as_we_read_it(btf)) {
		error = -EPROTO;
		snprintf(why, WHY_MAX, "sched_switch has other arguments here");
	}
	btf__free(btf);
	return error;
}

/* ---- the program ---- */

static int create_table(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "umt_table", sizeof(int),
			      sizeof(struct umt_core), (uint32_t)nr_cores + 1,
			      &opts);
}

/*
 * The kernel wants to see what the tables of users will be like.  A pattern of
 * our own, because libbpf 1.1 cannot resize the one that the program has.
 */
static int load_with_pattern(void)
{
	int pattern = create_table();
	int error;

	if (pattern < 0)
		return pattern;
	error = bpf_map__set_inner_map_fd(program->maps.tables, pattern);
	if (!error)
		error = umt_bpf__load(program);
	close(pattern);
	return error;
}

static int configure(void)
{
	uint32_t nr_bells = (uint32_t)(UMT_USERS * nr_cores);

	program->rodata->nr_cores = (uint32_t)nr_cores;
	bpf_program__set_autoattach(program->progs.umt_control, false);
	return bpf_map__set_max_entries(program->maps.bells, nr_bells);
}

static int map_seats(void)
{
	void *memory = mmap(NULL, UMT_USERS * sizeof(*seats), PROT_READ,
			    MAP_SHARED, bpf_map__fd(program->maps.seats), 0);

	if (memory == MAP_FAILED)
		return -errno;
	seats = memory;
	bells = calloc((size_t)(UMT_USERS * nr_cores), sizeof(*bells));
	return bells ? 0 : -ENOMEM;
}

static void unload(void)
{
	int i;

	for (i = 0; bells && i < UMT_USERS * nr_cores; i++)
		ring_close(&bells[i]);
	free(bells);
	bells = NULL;
	if (seats)
		munmap(seats, UMT_USERS * sizeof(*seats));
	seats = NULL;
	__atomic_store_n(&control_fd, -1, __ATOMIC_RELEASE);
	umt_bpf__destroy(program);
	program = NULL;
	memset(taken, 0, sizeof(taken));
}

static const char *hint(int error)
{
	if (error == -EPERM || error == -EACCES)
		return " (CAP_BPF and CAP_PERFMON are needed)";
	return "";
}

static int failed(int error, char why[WHY_MAX], const char *what)
{
	snprintf(why, WHY_MAX, "%s: %s%s", what, strerror(-error), hint(error));
	return error;
}

static int load_steps(char why[WHY_MAX])
{
	int error = check_kernel(why);

	if (error)
		return error;
	nr_cores = libbpf_num_possible_cpus();
	if (nr_cores < 0)
		return failed(nr_cores, why, "counting CPUs");
	program = umt_bpf__open();
	if (!program)
		return failed(-errno, why, "reading the program");
	error = configure();
	if (!error)
		error = load_with_pattern();
	if (error)
		return failed(error, why, "the kernel refused the program");
	error = umt_bpf__attach(program);
	if (error)
		return failed(error, why, "attaching the program");
	error = map_seats();
	if (error)
		return failed(error, why, "mapping");
	__atomic_store_n(&control_fd,
			 bpf_program__fd(program->progs.umt_control),
			 __ATOMIC_RELEASE);
	return 0;
}

/* libbpf's messages are for programs, and its switch is the process's. */
static int load(char why[WHY_MAX])
{
	libbpf_print_fn_t before;
	int error;

	if (program)
		return 0;
	before = libbpf_set_print(silent);
	error = load_steps(why);
	if (error)
		unload();
	libbpf_set_print(before);
	return error;
}

static int probe(char why[WHY_MAX])
{
	int error;

	user_lock();
	error = load(why);
	if (!error && !nr_users)
		unload();
	user_unlock();
	return error;
}

/* ---- a user ---- */

static int map_table(struct umt *user, int fd)
{
	void *memory = mmap(NULL, user_table_bytes(nr_cores),
			    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	user->word = memory;
	user->cores = (struct umt_core *)memory + 1;
	user->word->flags = user->flags;
	return 0;
}

static int make_table(struct umt *user)
{
	int tables = bpf_map__fd(program->maps.tables);
	int fd = create_table();
	int error;

	if (fd < 0)
		return fd;
	error = map_table(user, fd);
	if (!error)
		error = bpf_map_update_elem(tables, &user->index, &fd, 0);
	close(fd);
	return error;
}

/* A ring at @key of @table, open for reading. */
static int make_ring(struct ring *ring, struct bpf_map *table, unsigned int key,
		     size_t bytes)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "umt_ring", 0, 0,
				(uint32_t)bytes, NULL);
	int error;

	if (fd < 0)
		return fd;
	error = bpf_map_update_elem(bpf_map__fd(table), &key, &fd, 0);
	if (!error)
		error = ring_open(ring, fd, bytes);
	if (error)
		close(fd);
	return error;
}

static int take_index(struct umt *user)
{
	unsigned int i;

	for (i = 0; i < UMT_USERS; i++) {
		if (taken[i] || __atomic_load_n(&seats[i], __ATOMIC_ACQUIRE))
			continue;
		taken[i] = true;
		user->index = i;
		return 0;
	}
	return -EUSERS;
}

static int bpf_open(struct umt *user, size_t ring_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char why[WHY_MAX];
	int error;

	user->index = UMT_USERS;
	error = load(why);
	if (error)
		return error;
	nr_users++;
	error = take_index(user);
	if (error)
		return error;
	if (ring_bytes < page)
		ring_bytes = page;
	error = make_ring(&user->events, program->maps.rings, user->index,
			  ring_bytes);
	if (!error)
		error = user_cores_alloc(user, nr_cores);
	if (!error)
		error = make_table(user);
	if (error)
		return error;
	user->word->wake_bytes = (uint32_t)(ring_bytes / 4);
	user->bells = &bells[user->index * (unsigned int)nr_cores];
	user->fd = user->events.fd;
	return 0;
}

/* With its table gone the program drops the user's threads one by one. */
static void bpf_close(struct umt *user)
{
	if (!program)
		return;
	if (user->index < UMT_USERS) {
		bpf_map_delete_elem(bpf_map__fd(program->maps.tables),
				    &user->index);
		taken[user->index] = false;
	}
	user_unmap(user);
	ring_close(&user->events);
	if (!--nr_users)
		unload();
}

static int control(enum umt_op op, const struct umt *user)
{
	uint64_t args[2] = { op, user->index };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args,
		    .ctx_size_in = sizeof(args));
	int fd = __atomic_load_n(&control_fd, __ATOMIC_ACQUIRE);
	int error = bpf_prog_test_run_opts(fd, &opts);

	return error ? error : (int)opts.retval;
}

/* The kernel may be at another record of this CPU just now. */
static int bpf_add(struct umt *user)
{
	int saved = errno;
	int error, tries;

	for (tries = 0; tries < ADD_TRIES; tries++) {
		error = control(UMT_OP_ADD, user);
		if (error != -EAGAIN)
			break;
		sched_yield();
	}
	errno = saved;
	return error == -EAGAIN ? -ENOMEM : error;
}

static int bpf_remove(struct umt *user)
{
	int saved = errno;
	int error = control(UMT_OP_REMOVE, user);

	errno = saved;
	return error;
}

static int bpf_next(struct umt *user, struct umt_event *event)
{
	return ring_next(&user->events, event, sizeof(*event));
}

static int bpf_core_fd(struct umt *user, int cpu)
{
	unsigned int key =
		user->index * (unsigned int)nr_cores + (unsigned int)cpu;
	struct ring *bell = &user->bells[cpu];
	int error;

	if (!bell->consumer) {
		error = make_ring(bell, program->maps.bells, key,
				  (size_t)sysconf(_SC_PAGESIZE));
		if (error)
			return error;
	}
	ring_drain(bell);
	return bell->fd;
}

static void bpf_quiet(struct umt *user, int cpu)
{
	ring_drain(&user->bells[cpu]);
}

/*
 * Closing descriptors takes nothing away from the parent.  The table stays
 * mapped: a pointer from umt_cores() may be in use.
 */
static void bpf_child(struct umt *user)
{
	ring_close(&user->events);
	if (!--nr_users)
		unload();
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
