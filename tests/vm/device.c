/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of /dev/ktask as a program sees it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define FUZZ 20000

/* Half of what one of the killed processes had at most. */
#define KEPT_KIB ((long)(RANGE / 2 / 1024))

/* Locked memory of this process in bytes. */
static size_t locked_bytes(void)
{
	static char text[8192];
	char *word;

	read_file("/proc/self/status", text, sizeof(text));
	word = strstr(text, "VmLck:");
	return word ? strtoul(word + 6, NULL, 10) * 1024 : 0;
}

/* The owner and the group that udev's rules name, and nobody else. */
static void the_device_is_not_for_everybody(void)
{
	struct stat status;

	CHECK(!stat("/dev/ktask", &status));
	CHECK((status.st_mode & 07777) == 0660);
	say_verdict(true, __func__, NULL);
}

#define GROUP_KTASK 1234
#define GROUP_OTHER 1235

/* In an ordinary user's process of that one group.  Return: a positive errno. */
static int populate_as_member(gid_t gid)
{
	int fd;

	if (setgroups(0, NULL) || setgid(gid) || setuid(65534))
		return errno;
	fd = open("/dev/ktask", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	return do_request(fd, KTASK_IOC_POPULATE, map_memory(MIB), MIB,
			  KTASK_MEM_WRITE, NULL);
}

static int status_as_member(gid_t gid)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(populate_as_member(gid));
	return status_of(pid);
}

/* As ktask/packaging/60-ktask.rules has it. */
static void members_of_its_group_may_use_it(void)
{
	int member, other;

	CHECK(!chown("/dev/ktask", 0, GROUP_KTASK));
	member = status_as_member(GROUP_KTASK);
	other = status_as_member(GROUP_OTHER);
	CHECK(!chown("/dev/ktask", 0, 0));
	CHECK(member == 0);
	CHECK(other == EACCES);
	say_verdict(true, __func__, NULL);
}

static void populate_makes_every_page_present(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);
	size_t half = RANGE / 2 + PAGE;

	CHECK(fd >= 0 && addr);
	CHECK(!do_request(fd, KTASK_IOC_POPULATE, addr, 0, 0, NULL));
	CHECK(count_pages(addr, RANGE) == 0);
	CHECK(!do_request(fd, KTASK_IOC_POPULATE, addr, half, KTASK_MEM_WRITE,
			  NULL));
	CHECK(count_pages(addr, half) == half / PAGE);
	addr[0] = 1;
	CHECK(!do_request(fd, KTASK_IOC_POPULATE, addr, RANGE, 0, NULL));
	CHECK(count_pages(addr, RANGE) == RANGE / PAGE);
	CHECK(addr[0] == 1 && addr[PAGE] == 0);
	CHECK(locked_bytes() == 0);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

static void populate_names_the_address_that_failed(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE), *hole = addr + 10 * MIB + 5 * PAGE;
	void *failed;

	CHECK(fd >= 0 && addr);
	munmap(hole, PAGE);
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr, RANGE, 0, &failed) ==
	      EFAULT);
	CHECK(failed == hole);
	mprotect(addr, PAGE, PROT_READ);
	CHECK(!do_request(fd, KTASK_IOC_POPULATE, addr, PAGE, 0, &failed));
	CHECK(!failed);
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr, PAGE, KTASK_MEM_WRITE,
			 &failed) == EFAULT);
	CHECK(failed == addr);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

static void pinned_pages_are_counted_and_returned(void)
{
	int fd = open_device(), copy = dup(fd);
	char *addr = map_memory(RANGE);
	long before = count_pinned();

	CHECK(fd >= 0 && copy >= 0 && addr);
	CHECK(!do_request(fd, KTASK_IOC_PIN, addr, RANGE, 0, NULL));
	CHECK(locked_bytes() == RANGE);
	CHECK(pins_become(before + (long)(RANGE / PAGE)));
	CHECK(count_pages(addr, RANGE) == RANGE / PAGE);
	/* Overlaps, and what is not a pin. */
	CHECK(do_request(fd, KTASK_IOC_PIN, addr + MIB, PAGE, 0, NULL) ==
	      EEXIST);
	CHECK(do_request(fd, KTASK_IOC_UNPIN, addr, RANGE / 2, 0, NULL) ==
	      ENOENT);
	CHECK(locked_bytes() == RANGE);
	CHECK(!do_request(fd, KTASK_IOC_UNPIN, addr, RANGE, 0, NULL));
	CHECK(do_request(fd, KTASK_IOC_UNPIN, addr, RANGE, 0, NULL) == ENOENT);
	CHECK(locked_bytes() == 0 && pins_become(before));
	/* Closing unpins, but not before the last copy is closed. */
	CHECK(!do_request(fd, KTASK_IOC_PIN, addr, RANGE, 0, NULL));
	close(fd);
	CHECK(locked_bytes() == RANGE);
	close(copy);
	CHECK(locked_bytes() == 0 && pins_become(before));
	munmap(addr, RANGE);
	say_verdict(true, __func__, NULL);
}

static void a_failed_pin_pins_nothing(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE), *hole = addr + RANGE - 3 * PAGE;
	long before = count_pinned();
	void *failed;

	CHECK(fd >= 0 && addr);
	munmap(hole, PAGE);
	CHECK(do_request(fd, KTASK_IOC_PIN, addr, RANGE, 0, &failed) == EFAULT);
	CHECK(failed == hole);
	CHECK(locked_bytes() == 0 && pins_become(before));
	/* It is not in the way of another. */
	CHECK(!do_request(fd, KTASK_IOC_PIN, addr, RANGE / 2, 0, NULL));
	close(fd);
	CHECK(locked_bytes() == 0 && pins_become(before));
	munmap(addr, RANGE);
	say_verdict(true, __func__, NULL);
}

static void a_pin_that_cannot_be_told_is_undone(void)
{
	struct ktask_mem *told = (void *)map_memory(PAGE);
	int fd = open_device();
	char *addr = map_memory(RANGE);
	long before = count_pinned();

	CHECK(fd >= 0 && addr && told);
	*told = (struct ktask_mem){ .size = sizeof(*told),
				    .addr = (uintptr_t)addr,
				    .len = RANGE };
	mprotect(told, PAGE, PROT_READ);
	CHECK(ioctl(fd, KTASK_IOC_PIN, told) && errno == EFAULT);
	CHECK(locked_bytes() == 0 && pins_become(before));
	munmap(told, PAGE);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

static int pin_as_nobody(int fd, char *addr)
{
	struct rlimit limit = { MIB, MIB };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534))
		return 1;
	if (open("/dev/ktask", O_RDWR) >= 0)
		return 2;
	if (do_request(fd, KTASK_IOC_PIN, addr, MIB + PAGE, 0, NULL) != ENOMEM)
		return 3;
	if (locked_bytes() || do_request(fd, KTASK_IOC_PIN, addr, MIB, 0, NULL))
		return 4;
	if (do_request(fd, KTASK_IOC_PIN, addr + MIB, PAGE, 0, NULL) != ENOMEM)
		return 5;
	return locked_bytes() == MIB ? 0 : 6;
}

static void pins_respect_the_limit_of_locked_memory(void)
{
	int fd = open_device(), status;
	char *addr = map_memory(RANGE);
	long before = count_pinned();
	pid_t pid;

	CHECK(fd >= 0 && addr);
	pid = fork();
	if (pid == 0)
		_exit(pin_as_nobody(fd, addr));
	status = status_of(pid);
	close(fd);
	munmap(addr, RANGE);
	if (status)
		say_verdict(false, __func__, "step %d", status);
	else if (!pins_become(before))
		say_verdict(false, __func__, "pins are left");
	else
		say_verdict(true, __func__, NULL);
}

/* The child of a process that has pinned what it may, and is gone; tells its
 * parent's parent. */
static void pin_as_orphan(int fd, int report, pid_t parent)
{
	char *addr = map_memory(MIB), outcome;

	for (int ms = 0; ms < PATIENCE_MS && getppid() == parent; ms++)
		sleep_ms(1);
	outcome = (char)do_request(fd, KTASK_IOC_PIN, addr, MIB, 0, NULL);
	_exit(write(report, &outcome, 1) != 1);
}

static int pin_and_leave(int fd, int report)
{
	struct rlimit limit = { MIB, MIB };
	pid_t self = getpid(), pid;
	char *addr = map_memory(MIB);

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534))
		return 1;
	if (do_request(fd, KTASK_IOC_PIN, addr, MIB, 0, NULL))
		return 2;
	pid = fork();
	if (pid == 0)
		pin_as_orphan(fd, report, self);
	return pid < 0 ? 3 : 0;
}

static void what_a_process_leaves_pinned_counts_for_its_user(void)
{
	int fd = open_device(), ends[2], status;
	long before = count_pinned();
	char outcome = 0;
	pid_t pid;

	CHECK(fd >= 0 && !pipe(ends));
	pid = fork();
	if (pid == 0)
		_exit(pin_and_leave(fd, ends[1]));
	status = status_of(pid);
	close(fd);
	close(ends[1]);
	if (read(ends[0], &outcome, 1) != 1)
		outcome = 0;
	close(ends[0]);
	if (status)
		say_verdict(false, __func__, "step %d", status);
	else if (outcome != ENOMEM)
		say_verdict(false, __func__, "%s", strerror(outcome));
	else if (!pins_become(before))
		say_verdict(false, __func__, "pins are left");
	else
		say_verdict(true, __func__, NULL);
}

/* Pins or populates for ever. */
static void ask_until_killed(bool pins)
{
	int fd = open_device();
	char *addr = map_memory(RANGE);

	for (;;) {
		if (pins) {
			do_request(fd, KTASK_IOC_PIN, addr, RANGE, 0, NULL);
			do_request(fd, KTASK_IOC_UNPIN, addr, RANGE, 0, NULL);
		} else {
			do_request(fd, KTASK_IOC_POPULATE, addr, RANGE,
				   KTASK_MEM_WRITE, NULL);
		}
		madvise(addr, RANGE, MADV_DONTNEED);
	}
}

/* Free pages that CPUs keep for themselves.  Of several nodes these are tens of MiB,
 * since 6.7, and an idle CPU gives none back. */
static long kept_by_cpus_kib(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	char line[256];
	long pages = 0, count;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %ld", &count) == 1)
			pages += count;
	if (file)
		fclose(file);
	return pages * (long)(PAGE / 1024);
}

/* What is neither free nor the kernel's own as far as that is counted: pages of
 * processes, and of nobody. */
static long pages_kib(void)
{
	char text[8192], *total, *free;

	read_file("/proc/meminfo", text, sizeof(text));
	total = strstr(text, "MemTotal:");
	free = strstr(text, "MemFree:");
	return total && free ? strtol(total + 9, NULL, 10) -
				       strtol(free + 8, NULL, 10) -
				       kernel_kib() - kept_by_cpus_kib()
			     : -1;
}

static bool pages_come_back(long before)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 50) {
		if (pages_kib() <= before + KEPT_KIB)
			return true;
		sleep_ms(50);
	}
	return false;
}

static void killed_processes_leave_no_page(void)
{
	long before = count_pinned(), kib = pages_kib();

	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0)
			ask_until_killed(i % 2);
		sleep_ms(20 + rand() % 60);
		kill(pid, SIGKILL);
		CHECK(status_of(pid) == 1000);
	}
	CHECK(pins_become(before));
	CHECK(kib > 0);
	if (pages_come_back(kib)) {
		say_verdict(true, __func__, NULL);
		return;
	}
	say_verdict(false, __func__, "%ld KiB are not free again",
		    pages_kib() - kib);
}

static uint64_t any_address(uint64_t addr)
{
	static const uint64_t edges[] = {
		0,	    1,	       PAGE,	   PAGE - 1,
		UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - PAGE + 1,
	};

	switch (rand() % 4) {
	case 0:
		return edges[rand() % 8];
	case 1:
		return addr + (uint64_t)(rand() % 600) * PAGE;
	case 2:
		return (uint64_t)(rand() % (rand() % 8 ? 600 : 8000)) * PAGE;
	default:
		return (uint64_t)rand() << (rand() % 33);
	}
}

/* Where clearing would end the program and not only harm it. */
static bool is_own_image(const struct ktask_mem *mem)
{
	extern char __executable_start;

	return mem->addr < (uintptr_t)sbrk(0) &&
	       mem->addr + mem->len > (uintptr_t)&__executable_start;
}

static void fuzz_once(int fd, char *addr)
{
	static const unsigned long commands[] = {
		KTASK_IOC_POPULATE,
		KTASK_IOC_PIN,
		KTASK_IOC_UNPIN,
		KTASK_IOC_CLEAR,
	};
	struct ktask_mem mem[2] = {
		{ .size = sizeof(*mem) },
	};
	unsigned long command = commands[rand() % 4];

	mem->addr = rand() % 4 ? (uintptr_t)addr + any_address(0) % RANGE
			       : any_address(0);
	mem->len = any_address(0);
	if (rand() % 2) {
		mem->addr &= ~(PAGE - 1);
		mem->len &= ~(PAGE - 1);
	}
	if (rand() % 8 == 0)
		mem->flags = (uint32_t)any_address(0);
	if (rand() % 4 == 0) {
		mem->flags |= KTASK_MEM_FD;
		mem->fd = rand() % 8 ? rand() % 8 : (int)any_address(0);
	}
	if (rand() % 8 == 0)
		mem->max_threads = (uint32_t)any_address(0);
	if (rand() % 16 == 0)
		mem->size = (uint32_t)any_address(0);
	if (rand() % 16 == 0)
		mem->reserved[rand() % 5] = (__u32)any_address(0);
	if (rand() % 64 == 0)
		command = (unsigned long)rand();
	if (command == KTASK_IOC_CLEAR && is_own_image(mem))
		return;
	ioctl(fd, command, rand() % 32 ? (void *)mem : (void *)any_address(0));
}

/* Random requests in a process of their own, which they may harm. */
static void fuzzed_requests_harm_nobody(void)
{
	long before = count_pinned();
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit limit = { 8 * MIB, 8 * MIB };
		char *addr = map_memory(RANGE);
		int fd = open_device();

		setrlimit(RLIMIT_MEMLOCK, &limit);
		/* Some of what fd may be. */
		if (memfd_create("fuzz", 0) < 0 || fd < 0 || !addr ||
		    open("/proc/self/mem", O_RDWR) < 0 || setuid(65534))
			_exit(1);
		for (unsigned nr = scale_rounds(FUZZ); nr; nr--)
			fuzz_once(fd, addr);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	CHECK(pins_become(before));
	say_verdict(true, __func__, NULL);
}

static void bad_requests_are_refused(void)
{
	struct ktask_mem mem[2] = {
		{ .size = sizeof(*mem) },
	};
	int fd = open_device();
	char *addr = map_memory(RANGE);

	CHECK(fd >= 0 && addr);
	mem->addr = (uintptr_t)addr;
	mem->len = PAGE;
	mem->size = 8;
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, mem) < 0 && errno == EINVAL);
	/* Longer than the kernel knows: only with zeroes behind. */
	mem->size = sizeof(*mem) + 8;
	CHECK(!ioctl(fd, KTASK_IOC_POPULATE, mem));
	mem[1].size = 1;
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, mem) < 0 && errno == E2BIG);
	mem->size = PAGE + 8;
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, mem) < 0 && errno == E2BIG);
	mem->size = sizeof(*mem);
	mem->fd = 1;
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, mem) < 0 && errno == EINVAL);
	mem->fd = 0;
	mem->reserved[4] = 1;
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, mem) < 0 && errno == EINVAL);
	mem->reserved[4] = 0;
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr, PAGE, 4, NULL) ==
	      EINVAL);
	CHECK(do_request(fd, KTASK_IOC_CLEAR, addr, PAGE, KTASK_MEM_WRITE,
			 NULL) == EINVAL);
	CHECK(do_request(fd, KTASK_IOC_PIN, addr, PAGE, KTASK_MEM_WRITE,
			 NULL) == EINVAL);
	CHECK(request_of(fd, KTASK_IOC_PIN, 0, 0, PAGE, 0, NULL) == EINVAL);
	CHECK(request_of(fd, KTASK_IOC_UNPIN, 0, 0, PAGE, 0, NULL) == EINVAL);
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr + 1, PAGE, 0, NULL) ==
	      EINVAL);
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr, 1, 0, NULL) == EINVAL);
	CHECK(do_request(fd, KTASK_IOC_PIN, (void *)-PAGE, PAGE, 0, NULL) ==
	      EFAULT);
	CHECK(ioctl(fd, KTASK_IOC_POPULATE, NULL) < 0 && errno == EFAULT);
	CHECK(ioctl(fd, 0x1234, mem) < 0 && errno == ENOTTY);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

/* ---- a request that changes while it is read ---- */

#define CHANGES 5000

struct changing {
	volatile uint32_t *size;
	atomic_bool end;
};

static void *change_size(void *arg)
{
	struct changing *changing = arg;

	while (!changing->end) {
		*changing->size = offsetof(struct ktask_mem, failed);
		*changing->size = sizeof(struct ktask_mem);
	}
	return NULL;
}

/* Return: how many were said to fail although the page is there. */
static unsigned ask_while_changing(int fd, struct ktask_mem *mem, char *addr)
{
	struct changing changing = { .size = &mem->size };
	unsigned wrong = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, change_size, &changing))
		return CHANGES;
	for (int i = 0; i < CHANGES && !wrong; i++) {
		madvise(addr, PAGE, MADV_DONTNEED);
		if (ioctl(fd, KTASK_IOC_POPULATE, mem))
			wrong += errno != EFAULT || count_pages(addr, PAGE);
	}
	changing.end = true;
	pthread_join(thread, NULL);
	return wrong;
}

/* The answer would be written where a longer one would have it: here is nothing. */
static void a_size_that_changes_is_read_once(void)
{
	char *addr = map_memory(PAGE), *mapping = map_memory(2 * PAGE);
	int fd = open_device();
	struct ktask_mem *mem;
	unsigned wrong;

	CHECK(fd >= 0 && addr && mapping);
	mprotect(mapping + PAGE, PAGE, PROT_NONE);
	mem = (void *)(mapping + PAGE - offsetof(struct ktask_mem, failed));
	mem->size = offsetof(struct ktask_mem, failed);
	mem->addr = (uintptr_t)addr;
	mem->len = PAGE;
	wrong = ask_while_changing(fd, mem, addr);
	munmap(mapping, 2 * PAGE);
	munmap(addr, PAGE);
	close(fd);
	CHECK(!wrong);
	say_verdict(true, __func__, NULL);
}

void test_device(void)
{
	the_device_is_not_for_everybody();
	members_of_its_group_may_use_it();
	populate_makes_every_page_present();
	populate_names_the_address_that_failed();
	pinned_pages_are_counted_and_returned();
	a_failed_pin_pins_nothing();
	a_pin_that_cannot_be_told_is_undone();
	pins_respect_the_limit_of_locked_memory();
	what_a_process_leaves_pinned_counts_for_its_user();
	killed_processes_leave_no_page();
	bad_requests_are_refused();
	a_size_that_changes_is_read_once();
	fuzzed_requests_harm_nobody();
}
