/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See bpf_program.h.
 *
 * Behaves badly: each process that loads it adds its own program to every context
 * switch and wakeup of the machine, some 50 nanoseconds each.  Loading takes 50 ms on an
 * idle machine: libbpf reads the kernel's type information, 5 MB, and the kernel
 * verifies the program.
 *
 * Locking: bpf_program.h.
 *
 *	C: the one caller at a time
 *	K: the kernel too: by atomic operations
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <umt.skel.h>

#include "ebpf/shared.h"
#include "bpf_program.h"
#include "load_error.h"

#define RECORD_TRIES 20
#define RECORD_NAP_US 20000

static struct umt_bpf *umt_program; /* C */
static bool lists_maps; /* C */
static int nr_cores; /* C */
static bool taken_indexes[UMT_SUBSCRIBERS]; /* C */
static uint32_t link_ids[PROGRAM_LINKS_MAX]; /* C */
static int64_t *thread_counts; /* C; what is there: K */

/* Rings of single cores, kept: [subscriber * nr_cores + cpu], -1 none; C */
static int *doorbell_fds;

static int drop_message(enum libbpf_print_level level, const char *format,
			va_list args)
{
	return 0;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned int nr_doorbells(void)
{
	return (unsigned int)(UMT_SUBSCRIBERS * nr_cores);
}

static int create_table(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "umt_table", sizeof(int),
			      sizeof(struct umt_core), (uint32_t)nr_cores + 1,
			      &opts);
}

/*
 * The kernel needs a pattern of the subscribers' tables to load the program.  It is made
 * here, because libbpf 1.1 cannot resize the pattern in the program.
 */
static int load_with_pattern(void)
{
	int pattern = create_table();
	int error;

	if (pattern < 0)
		return pattern;
	error = bpf_map__set_inner_map_fd(umt_program->maps.tables, pattern);
	if (!error)
		error = umt_bpf__load(umt_program);
	close(pattern);
	return error;
}

static int configure_program(void)
{
	umt_program->rodata->nr_cores = (uint32_t)nr_cores;
	bpf_program__set_autoattach(umt_program->progs.umt_control, false);
	bpf_program__set_autoattach(umt_program->progs.umt_maps, false);
	bpf_program__set_autoload(umt_program->progs.umt_maps, lists_maps);
	return bpf_map__set_max_entries(umt_program->maps.doorbells,
					nr_doorbells());
}

static int map_thread_counts(void)
{
	void *memory = mmap(NULL, UMT_SUBSCRIBERS * sizeof(*thread_counts),
			    PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(umt_program->maps.thread_counts), 0);
	unsigned int i;

	if (memory == MAP_FAILED)
		return -errno;
	thread_counts = memory;
	doorbell_fds = malloc(nr_doorbells() * sizeof(*doorbell_fds));
	if (!doorbell_fds)
		return -ENOMEM;
	for (i = 0; i < nr_doorbells(); i++)
		doorbell_fds[i] = -1;
	return 0;
}

void program_unload(void)
{
	unsigned int i;

	for (i = 0; doorbell_fds && i < nr_doorbells(); i++)
		if (doorbell_fds[i] >= 0)
			close(doorbell_fds[i]);
	free(doorbell_fds);
	doorbell_fds = NULL;
	if (thread_counts)
		munmap(thread_counts, UMT_SUBSCRIBERS * sizeof(*thread_counts));
	thread_counts = NULL;
	umt_bpf__destroy(umt_program);
	umt_program = NULL;
	memset(taken_indexes, 0, sizeof(taken_indexes));
}

bool program_loaded(void)
{
	return umt_program;
}

static int thread_fd(int tid)
{
	long fd = syscall(SYS_pidfd_open, tid, O_EXCL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_pidfd_open, tid, 0);
	return fd < 0 ? -errno : (int)fd;
}

/*
 * Makes and removes a record of no subscriber.  Linux 7.3 never has memory for records
 * on CPUs without a 16-byte compare-and-swap (x86: cmpxchg16b).  Then another backend is
 * better than this one, which would refuse each thread.  On other CPUs an allocation
 * fails only while another CPU uses the same slab, so it is tried again; virtual CPUs
 * may take long.
 */
static int try_record(void)
{
	struct umt_record none = { 0 };
	int records = bpf_map__fd(umt_program->maps.records);
	int fd = thread_fd(getpid());
	int error, tries = 0;

	if (fd < 0)
		return 0;
	do {
		if (tries)
			usleep(RECORD_NAP_US);
		error = bpf_map_update_elem(records, &fd, &none, BPF_NOEXIST);
	} while (error == -ENOMEM && ++tries < RECORD_TRIES);
	if (!error)
		error = bpf_map_delete_elem(records, &fd);
	close(fd);
	return error == -ENOMEM ? error : 0;
}

int program_links(int *fds)
{
	struct bpf_object_skeleton *skeleton = umt_program->skeleton;
	int i, nr = 0;

	for (i = 0; i < skeleton->prog_cnt && nr < PROGRAM_LINKS_MAX; i++) {
		struct bpf_link *link = *skeleton->progs[i].link;

		if (link)
			fds[nr++] = bpf_link__fd(link);
	}
	return nr;
}

uint32_t program_link_id(int fd)
{
	struct bpf_link_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* The program that uses the library may have closed these descriptors, and may have
 * opened others with the same numbers. */
static bool links_are_ours(void)
{
	int fds[PROGRAM_LINKS_MAX], nr = program_links(fds);

	for (int i = 0; i < nr; i++)
		if (!program_link_id(fds[i]) ||
		    program_link_id(fds[i]) != link_ids[i])
			return false;
	return true;
}

static void record_links(void)
{
	int fds[PROGRAM_LINKS_MAX], nr = program_links(fds);

	for (int i = 0; i < nr; i++)
		link_ids[i] = program_link_id(fds[i]);
}

static int load_steps(char *why, size_t size)
{
	int error;

	nr_cores = libbpf_num_possible_cpus();
	if (nr_cores < 0)
		return why_not(nr_cores, "counting CPUs", why, size);
	umt_program = umt_bpf__open();
	if (!umt_program)
		return why_not(-errno, "reading the program", why, size);
	error = configure_program();
	if (!error)
		error = load_with_pattern();
	if (error)
		return why_refused(error, why, size);
	error = umt_bpf__attach(umt_program);
	if (error)
		return why_not(error, "attaching the program", why, size);
	error = try_record();
	if (error)
		return why_not(error, "keeping records of threads", why, size);
	record_links();
	error = map_thread_counts();
	return error ? why_not(error, "mapping", why, size) : 0;
}

/* libbpf would print messages.  Its setting is one for the whole process. */
int program_load(char *why, size_t size)
{
	libbpf_print_fn_t before;
	int error;

	if (umt_program)
		return 0;
	before = libbpf_set_print(drop_message);
	error = load_steps(why, size);
	if (error)
		program_unload();
	libbpf_set_print(before);
	return error;
}

/*
 * Detach all but umt_free, which costs other programs something only when a task is freed.
 * Without it, a thread that ends meanwhile would count forever, and its subscriber's number
 * would never be free again.
 */
static void detach_all(void)
{
	const struct bpf_object_skeleton *skeleton = umt_program->skeleton;

	for (int i = 0; i < skeleton->prog_cnt; i++) {
		const struct bpf_prog_skeleton *program = &skeleton->progs[i];

		if (*program->prog == umt_program->progs.umt_free)
			continue;
		bpf_link__destroy(*program->link);
		*program->link = NULL;
	}
}

static int attach_all(void)
{
	const struct bpf_object_skeleton *skeleton = umt_program->skeleton;

	for (int i = 0; i < skeleton->prog_cnt; i++) {
		const struct bpf_prog_skeleton *program = &skeleton->progs[i];

		if (*program->link || !bpf_program__autoattach(*program->prog))
			continue;
		*program->link = bpf_program__attach(*program->prog);
		if (!*program->link)
			return -errno;
	}
	return 0;
}

int program_watch(bool on)
{
	libbpf_print_fn_t before;
	int error = 0;

	if (on && umt_program->links.umt_switch)
		return 0;
	if (!links_are_ours())
		return -EBADF;
	before = libbpf_set_print(drop_message);
	if (on)
		error = attach_all();
	if (!on || error)
		detach_all();
	record_links();
	libbpf_set_print(before);
	return error;
}

int program_nr_cores(void)
{
	return nr_cores;
}

int program_control_fd(void)
{
	return bpf_program__fd(umt_program->progs.umt_control);
}

int program_maps(uint32_t *maps, unsigned int capacity)
{
	struct bpf_prog_info info = { .nr_map_ids = capacity,
				      .map_ids = (uintptr_t)maps };
	uint32_t size = sizeof(info);
	int error = bpf_obj_get_info_by_fd(program_control_fd(), &info, &size);

	return error ? error : (int)info.nr_map_ids;
}

void program_will_list(void)
{
	lists_maps = true;
}

/* Read @fd to its end and close it. */
static ssize_t read_list(int fd, struct umt_map *maps, size_t capacity)
{
	size_t bytes = capacity * sizeof(*maps), at = 0;
	ssize_t nr;

	do {
		nr = read(fd, (char *)maps + at, bytes - at);
		at += nr > 0 ? (size_t)nr : 0;
	} while (nr > 0 || (nr < 0 && (errno == EINTR || errno == EAGAIN)));
	if (nr < 0)
		nr = -errno;
	close(fd);
	return nr < 0 ? nr : (ssize_t)(at / sizeof(*maps));
}

ssize_t program_list_maps(struct umt_map *maps, size_t capacity)
{
	struct bpf_link *link =
		bpf_program__attach_iter(umt_program->progs.umt_maps, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	if (link)
		bpf_link__destroy(link);
	return fd < 0 ? fd : read_list(fd, maps, capacity);
}

uint32_t program_map_number(int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* ---- subscribers ---- */

bool program_subscriber_lingers(unsigned int index)
{
	return __atomic_load_n(&thread_counts[index], __ATOMIC_ACQUIRE);
}

static int take_index(struct program_subscriber *subscriber)
{
	unsigned int i;

	for (i = 0; i < UMT_SUBSCRIBERS; i++) {
		if (taken_indexes[i] || program_subscriber_lingers(i))
			continue;
		taken_indexes[i] = true;
		subscriber->index = i;
		return 0;
	}
	return -EUSERS;
}

static int grant_access(struct program_subscriber *subscriber,
			unsigned int flags)
{
	struct umt_grant grant = { .flags = flags };

	if (getrandom(grant.token, sizeof(grant.token), 0) !=
	    sizeof(grant.token))
		return -errno;
	memcpy(subscriber->token, grant.token, sizeof(subscriber->token));
	return bpf_map_update_elem(bpf_map__fd(umt_program->maps.grants),
				   &subscriber->index, &grant, 0);
}

/* A ring at @key of @table; its descriptor. */
static int make_ring(struct bpf_map *table, unsigned int key, size_t bytes)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "umt_ring", 0, 0,
				(uint32_t)bytes, NULL);
	int error;

	if (fd < 0)
		return fd;
	error = bpf_map_update_elem(bpf_map__fd(table), &key, &fd, 0);
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int make_table(struct program_subscriber *subscriber)
{
	int tables = bpf_map__fd(umt_program->maps.tables);
	int error;

	subscriber->table_fd = create_table();
	if (subscriber->table_fd < 0)
		return subscriber->table_fd;
	error = bpf_map_update_elem(tables, &subscriber->index,
				    &subscriber->table_fd, 0);
	if (error)
		close(subscriber->table_fd);
	return error;
}

/* The table comes last: with it the subscriber exists for the program. */
int program_subscriber_open(struct program_subscriber *subscriber,
			    unsigned int flags, size_t ring_bytes)
{
	int error = take_index(subscriber);

	if (error)
		return error;
	if (ring_bytes < page_bytes())
		ring_bytes = page_bytes();
	error = grant_access(subscriber, flags);
	if (error)
		goto release;
	subscriber->ring_fd = make_ring(umt_program->maps.rings,
					subscriber->index, ring_bytes);
	if (subscriber->ring_fd < 0) {
		error = subscriber->ring_fd;
		goto release;
	}
	error = make_table(subscriber);
	if (!error)
		return 0;
	close(subscriber->ring_fd);
release:
	taken_indexes[subscriber->index] = false;
	return error;
}

void program_subscriber_close(unsigned int index)
{
	bpf_map_delete_elem(bpf_map__fd(umt_program->maps.tables), &index);
	taken_indexes[index] = false;
}

int program_attach(const struct program_subscriber *subscriber, int tid,
		   bool traced)
{
	struct umt_record record = { .traced = traced,
				     .nr = 1,
				     .tid = (uint32_t)tid,
				     .subscriber = {
					     (__u16)subscriber->index } };
	int fd = thread_fd(tid);
	int error;

	if (fd < 0)
		return fd;
	__atomic_fetch_add(&thread_counts[subscriber->index], 1,
			   __ATOMIC_SEQ_CST);
	error = bpf_map_update_elem(bpf_map__fd(umt_program->maps.records), &fd,
				    &record, BPF_NOEXIST);
	if (error)
		__atomic_fetch_sub(&thread_counts[subscriber->index], 1,
				   __ATOMIC_SEQ_CST);
	close(fd);
	return error;
}

int program_doorbell(unsigned int index, int cpu, bool fresh)
{
	unsigned int key = index * (unsigned int)nr_cores + (unsigned int)cpu;
	int fd = doorbell_fds[key];

	if (fd >= 0 && !fresh)
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	fd = make_ring(umt_program->maps.doorbells, key, page_bytes());
	if (fd < 0 || fresh)
		return fd;
	doorbell_fds[key] = fd;
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}
