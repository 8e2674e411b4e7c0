/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register with an io_uring: each byte is in the slot that the header says, whether
 * the kernel clones buffers or not; limits in the middle leave every slot empty; a
 * child of a fork takes nothing back; a killed process leaves nothing charged; a ring
 * that is closed meanwhile is told, and leaves nothing pinned.
 */
#include "ktest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "device.h"
#include "syscalls.h"
#include "uring.h"

#define LEN (4 * MIB)
#define SLOT (MIB / 4)
#define FIRST 3u
#define NR_SLOTS (LEN / SLOT)
#define CAP_IPC_LOCK_BIT (1u << 14)
/* Enough for one registration, not for two; less than the usual 8 MiB.  Half a slot is
 * for the rings themselves, which newer kernels charge as well. */
#define LIMIT (LEN + LEN / 2 + SLOT / 2)

/* IORING_REGISTER_CLONE_BUFFERS of Linux 6.12. */
#define CLONE_BUFFERS 30

static struct uring ring;

/* A kernel that does not clone buffers. */
static bool refuse_cloning(long number, const long args[6], long *result)
{
	*result = -EINVAL;
	return number == SYS_io_uring_register && args[1] == CLONE_BUFFERS;
}

/* It says so of a ring that is none. */
static bool kernel_clones(void)
{
	struct {
		uint32_t src_fd, flags, src_off, dst_off, nr, pad[3];
	} clone = { .src_fd = UINT32_MAX, .flags = 2, .nr = 1 };

	return syscall(SYS_io_uring_register, ring.fd, CLONE_BUFFERS, &clone,
		       1) < 0 &&
	       errno == EBADF;
}

static int prepare_ctl(struct ktask_register_ctl *ctl,
		       struct ktask_uring_buffers *buffers, bool clones)
{
	int error;

	syscalls_answer = clones ? NULL : refuse_cloning;
	error = ktask_register_uring(ctl, buffers);
	if (!clones && !error && ctl->flags)
		error = -EPROTO;
	if (clones && !error && kernel_clones() &&
	    !(ctl->flags & KTASK_REGISTER_PARALLEL))
		error = -EPROTO;
	return error;
}

#define need_ring()                                                \
	do {                                                       \
		if (!uring_open(&ring, NR_SLOTS + FIRST + 1))      \
			ktest_skip("no io_uring is to be had: %s", \
				   strerror(errno));               \
	} while (0)

/* A kernel that clones buffers charges each clone, and gives it back later. */
static void need_lockable_memory(void)
{
	struct rlimit limit;

	if (geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur < 16 * (rlim_t)LEN)
		ktest_skip("locked memory is limited to %llu KiB",
			   (unsigned long long)limit.rlim_cur / 1024);
}

static struct ktask_uring_buffers buffers_at(char *at)
{
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;

	buffers.ring_fd = ring.fd;
	buffers.first_slot = FIRST;
	buffers.addr = at;
	buffers.slot_bytes = SLOT;
	return buffers;
}

static int byte_of_file(void)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	return fd;
}

/* What reading into the first byte of the slot says. */
static int read_into(char *at, size_t offset, unsigned slot)
{
	int fd = byte_of_file();
	int result = uring_read(&ring, fd, at + offset, 1, slot);

	close(fd);
	return result;
}

static unsigned slots_in_use(char *at, size_t len)
{
	unsigned nr = 0;

	for (size_t offset = 0; offset < len; offset += SLOT)
		nr += read_into(at, offset,
				FIRST + (unsigned)(offset / SLOT)) == 1;
	return nr;
}

static void register_and_read(bool clones, size_t len)
{
	char *at = map_private(LEN);
	struct ktask_uring_buffers buffers = buffers_at(at);
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	assert_int_equal(prepare_ctl(&ctl, &buffers, clones), 0);
	assert_int_equal(ktask_register(&registration, at, len, &ctl, NULL), 0);
	assert_int_equal(slots_in_use(at, len), (len + SLOT - 1) / SLOT);
	/* Its last byte, but none behind. */
	assert_int_equal(
		read_into(at, len - 1, FIRST + (unsigned)((len - 1) / SLOT)),
		1);
	assert_int_equal(
		read_into(at, len, FIRST + (unsigned)((len - 1) / SLOT)),
		-EFAULT);
	assert_int_equal(read_into(at, 0, FIRST + 1), -EFAULT);
	assert_int_equal(read_into(at, 0, FIRST - 1), -EFAULT);
	memset(at, 1, len);
	assert_int_equal(read_into(at, SLOT, FIRST + 1), 1);
	assert_int_equal(at[SLOT], 0);
	assert_int_equal(at[SLOT + 1], 1);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(slots_in_use(at, len), 0);
	syscalls_answer = NULL;
	munmap(at, LEN);
}

static void each_byte_is_in_its_slot(void **state)
{
	need_lockable_memory();
	need_ring();
	register_and_read(true, LEN);
	register_and_read(false, LEN);
	register_and_read(true, 5 * SLOT + 12345);
	register_and_read(false, 5 * SLOT + 12345);
	uring_close(&ring);
}

static void bad_arguments_are_refused(void **state)
{
	struct ktask_uring_buffers buffers;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	static char at[4096];

	need_ring();
	assert_int_equal(ktask_register_uring(&ctl, NULL), -EINVAL);
	buffers = buffers_at(at);
	assert_int_equal(ktask_register_uring(NULL, &buffers), -EINVAL);
	buffers.slot_bytes = 100;
	assert_int_equal(ktask_register_uring(&ctl, &buffers), -EINVAL);
	buffers.slot_bytes = 2048 * MIB;
	assert_int_equal(ktask_register_uring(&ctl, &buffers), -EINVAL);
	buffers = buffers_at(at);
	buffers.struct_size--;
	assert_int_equal(ktask_register_uring(&ctl, &buffers), -EINVAL);
	buffers = buffers_at(at);
	buffers.slot_bytes = 0;
	assert_int_equal(ktask_register_uring(&ctl, &buffers), 0);
	assert_int_equal(ctl.unit_bytes, 1024 * MIB);
	uring_close(&ring);
}

static void a_table_that_is_too_small_is_told(void **state)
{
	char *at = map_private(LEN);
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uring_buffers buffers;
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	need_ring();
	buffers = buffers_at(at);
	buffers.first_slot = FIRST + 5;
	opts.result = &result;
	assert_int_equal(prepare_ctl(&ctl, &buffers, false), 0);
	assert_true(ktask_register(&registration, at, LEN, &ctl, &opts) < 0);
	assert_null(registration);
	assert_true(result.fail_offset < LEN);
	buffers.first_slot = FIRST;
	assert_int_equal(slots_in_use(at, LEN), 0);
	syscalls_answer = NULL;
	uring_close(&ring);
	munmap(at, LEN);
}

struct kernel_cap {
	unsigned version;
	int pid;
};

struct kernel_cap_set {
	unsigned effective;
	unsigned permitted;
	unsigned inheritable;
};

static bool is_alone; /* no other process is of the same user */

/* A user of its own has nothing charged before. */
static bool become_limited(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct kernel_cap head = { 0x20080522, 0 };
	struct kernel_cap_set sets[2];
	unsigned uid = 1000000000u + (unsigned)getppid();

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return false;
	is_alone = !geteuid() && !syscall(SYS_setresuid, uid, uid, uid);
	if (is_alone)
		return true;
	if (syscall(SYS_capget, &head, sets))
		return false;
	sets[0].effective &= ~CAP_IPC_LOCK_BIT;
	return !syscall(SYS_capset, &head, sets);
}

/* Charged by others of the same user in another test, it may never fit. */
static int register_when_possible(struct ktask_registration **registration,
				  char *at, size_t len,
				  const struct ktask_register_ctl *ctl)
{
	uint64_t end_ns = ktest_now_ns() + 60000000000ull;
	int error;

	/* Of a ring that was closed pages are given back later. */
	do {
		error = ktask_register(registration, at, len, ctl, NULL);
		if (error)
			usleep(10000);
	} while (error == -ENOMEM && ktest_now_ns() < end_ns);
	return error;
}

/* Calls of the device: the lowest piece that failed, and what was pinned before. */
static struct {
	ktask_register_func add;
	_Atomic(uintptr_t) failed;
	_Atomic size_t pinned_bytes;
} watched;

static int add_watched(void *start, void *end, void *arg)
{
	size_t pinned_bytes = status_bytes("VmPin");
	int error = watched.add(start, end, arg);
	uintptr_t lowest = watched.failed;

	while (error && (!lowest || (uintptr_t)start < lowest))
		if (atomic_compare_exchange_weak(&watched.failed, &lowest,
						 (uintptr_t)start)) {
			watched.pinned_bytes = pinned_bytes;
			break;
		}
	return error;
}

struct limited_way {
	bool clones;
	size_t max_piece_bytes;
};

/*
 * Where the limit is reached.  In order all that was pinned lies below; one slot after
 * another, by a user of its own, these are the slots within the limit.  Clones and calls
 * at once are charged for a while: how far they get is the kernel's to say.
 */
static void check_failed_offset(const struct limited_way *way, const char *at,
				size_t offset)
{
	ktest_check((uintptr_t)at + offset == watched.failed);
	if (way->clones)
		return;
	ktest_check(offset > 0);
	ktest_check(offset == watched.pinned_bytes);
	if (way->max_piece_bytes == SLOT && is_alone)
		ktest_check(offset == LIMIT - SLOT / 2);
}

static int meet_the_limit(void *arg)
{
	const struct limited_way *way = arg;
	char *at = map_private(2 * LEN);
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uring_buffers buffers;
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	ktest_check(become_limited());
	ktest_check(uring_open(&ring, 2 * NR_SLOTS + FIRST));
	buffers = buffers_at(at);
	ktest_check(!prepare_ctl(&ctl, &buffers, way->clones));
	watched.add = ctl.register_func;
	ctl.register_func = add_watched;
	ctl.max_piece_bytes = way->max_piece_bytes;
	opts.result = &result;
	ktest_check(ktask_register(&registration, at, 2 * LEN, &ctl, &opts) ==
		    -ENOMEM);
	ktest_check(!registration);
	ktest_check(result.fail_error == -ENOMEM);
	ktest_check(result.fail_offset % SLOT == 0);
	ktest_check(result.fail_offset < 2 * LEN);
	check_failed_offset(way, at, result.fail_offset);
	ktest_check(!slots_in_use(at, 2 * LEN));
	/* Nothing is charged any more. */
	ktest_check(!register_when_possible(&registration, at, LEN, &ctl));
	ktest_check(slots_in_use(at, LEN) == NR_SLOTS);
	ktest_check(!ktask_unregister(&registration, NULL));
	return 0;
}

static void a_limit_in_the_middle_leaves_nothing(void **state)
{
	struct limited_way ways[] = {
		{ false, SLOT }, { false, 0 }, { true, SLOT }, { true, 0 }
	};

	need_ring();
	uring_close(&ring);
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(ways); i++)
		assert_int_equal(ktest_in_child(meet_the_limit, &ways[i]), 0);
}

static int register_and_be_killed(void *arg)
{
	char *at = map_private(LEN);
	struct ktask_uring_buffers buffers;
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	ktest_check(uring_open(&ring, NR_SLOTS + FIRST));
	buffers = buffers_at(at);
	ktest_check(!ktask_register_uring(&ctl, &buffers));
	ktest_check(!register_when_possible(&registration, at, LEN, &ctl));
	kill(getpid(), SIGKILL);
	return 1;
}

/* The limit allows one of them: what a killed one had comes back. */
static int kill_and_register(void *arg)
{
	ktest_check(become_limited());
	for (unsigned i = 0; i < 4; i++) {
		int status = ktest_in_child(register_and_be_killed, NULL);

		ktest_check(WIFSIGNALED(status));
		ktest_check(WTERMSIG(status) == SIGKILL);
	}
	return 0;
}

static void a_killed_process_leaves_nothing(void **state)
{
	need_ring();
	uring_close(&ring);
	assert_int_equal(ktest_in_child_for(kill_and_register, NULL, 280), 0);
}

static int forget_there(void *arg)
{
	ktest_check(!ktask_unregister(arg, NULL));
	return 0;
}

static void a_child_leaves_the_parents_slots(void **state)
{
	char *at = map_private(LEN);
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uring_buffers buffers;
	struct ktask_registration *registration;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;

	need_lockable_memory();
	need_ring();
	buffers = buffers_at(at);
	assert_int_equal(ktask_register_uring(&ctl, &buffers), 0);
	/* Helpers beside a fork are not this test's. */
	opts.max_threads = 1;
	assert_int_equal(ktask_register(&registration, at, LEN, &ctl, &opts),
			 0);
	assert_int_equal(ktest_in_child(forget_there, &registration), 0);
	memset(at, 1, LEN);
	assert_int_equal(slots_in_use(at, LEN), NR_SLOTS);
	/* The device writes where the parent reads, fork or not. */
	for (size_t offset = 0; offset < LEN; offset += SLOT)
		assert_int_equal(at[offset], 0);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	uring_close(&ring);
	munmap(at, LEN);
}

/* Several chunks, of several slots each. */
#define LOST_LEN (6 * LEN)
#define LOST_SLOT (4 * SLOT)
/* Far from those that are made meanwhile: closed, it stays closed. */
#define LOST_FD 500

static struct {
	ktask_register_func add;
	_Atomic unsigned calls;
} lost;

static int close_and_add(void *start, void *end, void *arg)
{
	if (++lost.calls == 3)
		close(LOST_FD);
	return lost.add(start, end, arg);
}

/* As kB of /proc/self/status. */
static unsigned long pinned_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "VmPin: %lu", &kib);
	fclose(file);
	return kib;
}

/* Of a ring that was closed pages are given back later. */
static void nothing_is_pinned(void)
{
	uint64_t end_ns = ktest_now_ns() + 60000000000ull;

	while (pinned_kib() && ktest_now_ns() < end_ns)
		usleep(1000);
	assert_int_equal(pinned_kib(), 0);
}

static unsigned nr_descriptors(void)
{
	unsigned nr = 0;

	for (int fd = 0; fd < 2 * LOST_FD; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* A ring that only its descriptor keeps. */
static void open_ring_to_lose(struct ktask_uring_buffers *buffers)
{
	assert_true(uring_open(&ring, LOST_LEN / LOST_SLOT));
	assert_int_equal(fcntl(ring.fd, F_DUPFD_CLOEXEC, LOST_FD), LOST_FD);
	uring_close(&ring);
	buffers->ring_fd = LOST_FD;
	buffers->first_slot = 0;
	buffers->slot_bytes = LOST_SLOT;
}

static int register_all(struct ktask_registration **registration, char *at,
			bool clones, bool is_lost)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	static struct ktask_uring_buffers buffers;

	buffers = buffers_at(at);
	open_ring_to_lose(&buffers);
	assert_int_equal(prepare_ctl(&ctl, &buffers, clones), 0);
	ctl.max_piece_bytes = LOST_SLOT;
	lost.calls = 0;
	lost.add = ctl.register_func;
	if (is_lost)
		ctl.register_func = close_and_add;
	return ktask_register(registration, at, LOST_LEN, &ctl, NULL);
}

static void a_ring_may_be_closed_meanwhile(void **state)
{
	struct ktask_registration *registration;
	unsigned before = nr_descriptors();
	char *at = map_private(LOST_LEN);

	need_lockable_memory();
	need_ring();
	uring_close(&ring);
	for (unsigned clones = 0; clones < 2; clones++) {
		/* Between two pieces. */
		assert_int_equal(register_all(&registration, at, clones, true),
				 -EBADF);
		assert_null(registration);
		nothing_is_pinned();
		/* And before they are taken back. */
		assert_int_equal(register_all(&registration, at, clones, false),
				 0);
		assert_true(pinned_kib() > 0);
		close(LOST_FD);
		assert_int_equal(ktask_unregister(&registration, NULL), -EBADF);
		assert_null(registration);
		nothing_is_pinned();
		assert_int_equal(nr_descriptors(), before);
	}
	syscalls_answer = NULL;
	munmap(at, LOST_LEN);
}

/* First those in children: TSAN allows no threads after a fork of many. */
KTEST_MAIN(KTEST(a_limit_in_the_middle_leaves_nothing),
	   KTEST(a_killed_process_leaves_nothing),
	   KTEST(a_child_leaves_the_parents_slots),
	   KTEST(a_ring_may_be_closed_meanwhile),
	   KTEST(each_byte_is_in_its_slot), KTEST(bad_arguments_are_refused),
	   KTEST(a_table_that_is_too_small_is_told))
