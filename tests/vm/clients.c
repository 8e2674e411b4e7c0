/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of the requests of /dev/ktask that clear memory or files, and that
 * populate the memory of another process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ktask.h>
#include <linux/userfaultfd.h>

#include "guest.h"

static bool all_are(const char *addr, size_t len, char value)
{
	for (size_t i = 0; i < len; i++)
		if (addr[i] != value)
			return false;
	return true;
}

static void clear_makes_every_byte_zero(void)
{
	int fd = open_device();
	char *addr = map_memory(RANGE), *hole = addr + 12 * MIB;
	void *failed;

	CHECK(fd >= 0 && addr);
	memset(addr, 'x', RANGE);
	CHECK(!do_request(fd, KTASK_IOC_CLEAR, addr + PAGE, RANGE - 3 * PAGE, 0,
			  NULL));
	CHECK(all_are(addr, PAGE, 'x') && all_are(addr + PAGE, PAGE, 0));
	CHECK(all_are(addr + PAGE, RANGE - 3 * PAGE, 0));
	CHECK(all_are(addr + RANGE - 2 * PAGE, 2 * PAGE, 'x'));
	/* What is not there comes to be there. */
	madvise(addr, RANGE, MADV_DONTNEED);
	CHECK(!do_request(fd, KTASK_IOC_CLEAR, addr, RANGE, 0, NULL));
	CHECK(count_pages(addr, RANGE) == RANGE / PAGE);
	mprotect(hole, PAGE, PROT_READ);
	CHECK(do_request(fd, KTASK_IOC_CLEAR, addr, RANGE, 0, &failed) ==
	      EFAULT);
	CHECK(failed == hole);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

static void clear_makes_a_memfd_zero(void)
{
	int fd = open_device(), file = memfd_create("test", MFD_ALLOW_SEALING);
	char *addr;
	uint64_t failed;

	CHECK(fd >= 0 && file >= 0 && !ftruncate(file, RANGE));
	addr = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(addr != MAP_FAILED);
	memset(addr, 'x', RANGE);
	CHECK(!request_of(fd, KTASK_IOC_CLEAR, file, MIB, RANGE - 2 * MIB, 0,
			  NULL));
	CHECK(all_are(addr, MIB, 'x') && all_are(addr + RANGE - MIB, MIB, 'x'));
	CHECK(all_are(addr + MIB, RANGE - 2 * MIB, 0));
	/* Behind the end of the file. */
	CHECK(request_of(fd, KTASK_IOC_CLEAR, file, RANGE - MIB, 2 * MIB, 0,
			 &failed) == EFAULT);
	CHECK(failed == RANGE);
	CHECK(request_of(fd, KTASK_IOC_CLEAR, file, -PAGE, PAGE, 0, NULL));
	munmap(addr, RANGE);
	CHECK(!fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(request_of(fd, KTASK_IOC_CLEAR, file, 0, RANGE, 0, NULL) ==
	      EPERM);
	close(file);
	CHECK(request_of(fd, KTASK_IOC_CLEAR, file, 0, PAGE, 0, NULL) == EBADF);
	/* What must not be written. */
	file = open("/init", O_RDONLY);
	CHECK(file >= 0);
	CHECK(request_of(fd, KTASK_IOC_CLEAR, file, 0, PAGE, 0, NULL) ==
	      EACCES);
	close(file);
	close(fd);
	say_verdict(true, __func__, NULL);
}

/* A process with memory that it does not touch, until it is killed. */
static pid_t start_sleeper(char **addr)
{
	pid_t pid;

	*addr = map_memory(RANGE);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static int open_memory(pid_t pid, int mode)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, mode | O_CLOEXEC);
}

/* Pages of the process that are there, or swapped out; at most RANGE.  Its statm is
 * approximate, and counts what it touches itself. */
static size_t present_of(pid_t pid, const char *addr, size_t len)
{
	static uint64_t entries[RANGE / PAGE];
	size_t bytes = len / PAGE * sizeof(*entries), nr = 0;
	char path[40];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = pread(fd, entries, bytes,
		    (off_t)((uintptr_t)addr / PAGE * sizeof(*entries)));
	close(fd);
	if (got != (ssize_t)bytes)
		return SIZE_MAX;
	for (size_t i = 0; i < len / PAGE; i++)
		nr += entries[i] >> 62 != 0;
	return nr;
}

static void memory_of_another_process_is_populated(void)
{
	int fd = open_device(), of, reader, status;
	uint64_t failed;
	char *addr;
	pid_t pid = start_sleeper(&addr);
	uint64_t at = (uintptr_t)addr;

	of = open_memory(pid, O_RDWR);
	reader = open_memory(pid, O_RDONLY);
	CHECK(fd >= 0 && of >= 0 && reader >= 0);
	CHECK(present_of(pid, addr, RANGE) == 0);
	CHECK(!request_of(fd, KTASK_IOC_POPULATE, of, at, RANGE,
			  KTASK_MEM_WRITE, NULL));
	CHECK(present_of(pid, addr, RANGE) == RANGE / PAGE);
	CHECK(count_pages(addr, RANGE) == 0);
	/* Reading is enough to populate for reading. */
	CHECK(!request_of(fd, KTASK_IOC_POPULATE, reader, at, RANGE, 0, NULL));
	CHECK(request_of(fd, KTASK_IOC_POPULATE, reader, at, RANGE,
			 KTASK_MEM_WRITE, NULL) == EBADF);
	CHECK(request_of(fd, KTASK_IOC_POPULATE, of, PAGE, 2 * PAGE, 0,
			 &failed) == EFAULT);
	CHECK(failed == PAGE);
	/* Neither another file, nor the memory of whoever is no more. */
	CHECK(request_of(fd, KTASK_IOC_POPULATE, fd, at, PAGE, 0, NULL) ==
	      EINVAL);
	kill(pid, SIGKILL);
	status = status_of(pid);
	CHECK(status == 1000);
	CHECK(request_of(fd, KTASK_IOC_POPULATE, of, at, PAGE, 0, NULL) ==
	      ESRCH);
	close(of);
	close(reader);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

/* It is the right to open the file, which is the kernel's to give. */
static void memory_of_the_more_privileged_stays_theirs(void)
{
	int fd = open_device(), status;
	char *addr;
	pid_t victim = start_sleeper(&addr), pid = fork();

	if (pid == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		_exit(open_memory(victim, O_RDONLY) >= 0 ? 2
		      : errno == EACCES			 ? 0
							 : 3);
	}
	status = status_of(pid);
	kill(victim, SIGKILL);
	status_of(victim);
	munmap(addr, RANGE);
	close(fd);
	CHECK(status == 0);
	say_verdict(true, __func__, NULL);
}

/* The process dies in the middle, again and again. */
static void the_populated_process_may_die_meanwhile(void)
{
	int fd = open_device();

	for (int i = 0; i < 20; i++) {
		char *addr;
		pid_t victim = start_sleeper(&addr), pid;
		int of = open_memory(victim, O_RDWR), status;

		CHECK(fd >= 0 && of >= 0);
		pid = fork();
		if (pid == 0)
			_exit(request_of(fd, KTASK_IOC_POPULATE, of,
					 (uintptr_t)addr, RANGE,
					 KTASK_MEM_WRITE, NULL));
		sleep_ms(rand() % 20);
		kill(victim, SIGKILL);
		CHECK(status_of(victim) == 1000);
		status = status_of(pid);
		close(of);
		munmap(addr, RANGE);
		/* Done, too late, or in its death throes. */
		CHECK(status == 0 || status == ESRCH || status == EFAULT ||
		      status == EINTR || status == ENOMEM);
	}
	close(fd);
	say_verdict(true, __func__, NULL);
}

/* Populating it for reading takes seconds, and no memory but its page tables. */
#define HUGE (8192 * MIB)

static unsigned long page_table_kib(pid_t pid)
{
	char path[40], text[4096] = "", *found;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	read_file(path, text, sizeof(text));
	found = strstr(text, "VmPTE:");
	return found ? strtoul(found + strlen("VmPTE:"), NULL, 10) : 0;
}

/* Return: what became of a request whose process is killed in the middle. */
static int populate_the_dying(int fd)
{
	char *addr = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long before;
	pid_t victim, pid;
	int of;

	if (addr == MAP_FAILED)
		return -1;
	madvise(addr, HUGE, MADV_NOHUGEPAGE);
	victim = fork();
	if (victim == 0)
		for (;;)
			pause();
	before = page_table_kib(victim);
	of = open_memory(victim, O_RDONLY);
	pid = fork();
	if (pid == 0)
		_exit(request_of(fd, KTASK_IOC_POPULATE, of, (uintptr_t)addr,
				 HUGE, 0, NULL));
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (page_table_kib(victim) > before + 64)
			break;
		sleep_ms(1);
	}
	kill(victim, SIGKILL);
	status_of(victim);
	close(of);
	munmap(addr, HUGE);
	return status_of(pid);
}

/* Else it would make memory for nobody, to its end. */
static void a_request_ends_with_the_populated_process(void)
{
	int fd = open_device(), status = 0;

	CHECK(fd >= 0);
	/* It may have been faster than the signal. */
	for (int i = 0; i < 3 && status == 0; i++)
		status = populate_the_dying(fd);
	close(fd);
	if (status == ESRCH)
		say_verdict(true, __func__, NULL);
	else
		say_verdict(false, __func__, "%s", strerror(status));
}

/* ---- ahead of the touch ---- */

#define AHEAD (KTASK_MEM_WRITE | KTASK_MEM_AHEAD)
/* Of each kind of memory. */
#define PART MIB

static void what_is_made_ahead_is_there(void)
{
	int fd = open_device(), of;
	char *addr;
	pid_t pid = start_sleeper(&addr);
	uint64_t at = (uintptr_t)addr, failed;

	of = open_memory(pid, O_RDWR);
	CHECK(fd >= 0 && of >= 0);
	CHECK(!request_of(fd, KTASK_IOC_POPULATE, of, at, RANGE, AHEAD, NULL));
	CHECK(present_of(pid, addr, RANGE) == RANGE / PAGE);
	CHECK(request_of(fd, KTASK_IOC_POPULATE, of, PAGE, PAGE, AHEAD,
			 &failed) == EFAULT);
	CHECK(failed == PAGE);
	/* For writing, and of another process. */
	CHECK(request_of(fd, KTASK_IOC_POPULATE, of, at, PAGE, KTASK_MEM_AHEAD,
			 NULL) == EINVAL);
	CHECK(do_request(fd, KTASK_IOC_POPULATE, addr, PAGE, AHEAD, NULL) ==
	      EINVAL);
	CHECK(request_of(fd, KTASK_IOC_CLEAR, of, at, PAGE, KTASK_MEM_AHEAD,
			 NULL) == EINVAL);
	kill(pid, SIGKILL);
	CHECK(status_of(pid) == 1000);
	CHECK(request_of(fd, KTASK_IOC_POPULATE, of, at, PAGE, AHEAD, NULL) ==
	      ESRCH);
	close(of);
	munmap(addr, RANGE);
	close(fd);
	say_verdict(true, __func__, NULL);
}

/* All of its pages wait for an answer, which nobody gives. */
static bool register_range(char *addr, size_t len)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = {
		.range = { (uintptr_t)addr, len },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
	       !ioctl(fd, UFFDIO_REGISTER, &area);
}

/* Kinds of memory, one behind the other: what of them is the process's to write and
 * nobody else's is the first. */
enum { PLAIN, SHARED, FILE_OWN, READ_ONLY, SPARSE, STACK, WATCHED, KINDS };

static void *map_kind(char *at, int flags)
{
	return mmap(at, PART, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_ANONYMOUS | flags, -1, 0);
}

static bool map_kinds(char *addr, int file)
{
	return map_kind(addr + SHARED * PART, MAP_SHARED) != MAP_FAILED &&
	       mmap(addr + FILE_OWN * PART, PART, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_PRIVATE, file, 0) != MAP_FAILED &&
	       !mprotect(addr + READ_ONLY * PART, PART, PROT_READ) &&
	       map_kind(addr + SPARSE * PART, MAP_PRIVATE | MAP_NORESERVE) !=
		       MAP_FAILED &&
	       map_kind(addr + STACK * PART, MAP_PRIVATE | MAP_GROWSDOWN) !=
		       MAP_FAILED;
}

/* Return: which kind was treated wrongly, or 0. */
static int make_kinds_ahead(int fd, int of, char *addr, pid_t pid)
{
	uint64_t at = (uintptr_t)addr, failed;

	for (int kind = PLAIN + 1; kind < KINDS; kind++) {
		if (request_of(fd, KTASK_IOC_POPULATE, of,
			       at + (uint64_t)kind * PART, PART, AHEAD,
			       &failed) != EFAULT ||
		    failed != at + (uint64_t)kind * PART)
			return kind;
	}
	if (present_of(pid, addr, KINDS * PART))
		return KINDS;
	/* What lies before it is made, and is kept. */
	if (request_of(fd, KTASK_IOC_POPULATE, of, at, 2 * PART, AHEAD,
		       &failed) != EFAULT ||
	    failed != at + PART ||
	    present_of(pid, addr, KINDS * PART) != PART / PAGE)
		return PLAIN + KINDS + 1;
	return 0;
}

static void only_ordinary_memory_is_made_ahead(void)
{
	int fd = open_device(), of, wrong, file = memfd_create("test", 0);
	char *addr = map_memory(KINDS * PART);
	char *ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	CHECK(fd >= 0 && file >= 0 && addr && ready != MAP_FAILED);
	CHECK(!ftruncate(file, PART) && map_kinds(addr, file));
	madvise(addr, PART, MADV_NOHUGEPAGE);
	pid = fork();
	if (pid == 0) {
		*ready = register_range(addr + WATCHED * PART, PART) ? 1 : 2;
		for (;;)
			pause();
	}
	for (int ms = 0; ms < PATIENCE_MS && !*(volatile char *)ready; ms++)
		sleep_ms(1);
	of = open_memory(pid, O_RDWR);
	CHECK(of >= 0 && *ready);
	wrong = *ready == 1 ? make_kinds_ahead(fd, of, addr, pid) : -1;
	kill(pid, SIGKILL);
	status_of(pid);
	close(of);
	close(file);
	munmap(addr, KINDS * PART);
	munmap(ready, PAGE);
	close(fd);
	if (wrong < 0)
		say_verdict(true, __func__, "no userfaultfd");
	else if (wrong)
		say_verdict(false, __func__, "kind %d", wrong);
	else
		say_verdict(true, __func__, NULL);
}

/* Locked as it is touched: a page more would be one that cannot be taken back. */
static void locked_memory_is_not_made_ahead(void)
{
	int fd = open_device(), of, error;
	char *addr = map_memory(PART);
	pid_t pid;

	CHECK(fd >= 0 && addr);
	pid = fork();
	if (pid == 0) {
		syscall(SYS_mlock2, addr, PART, 1);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, WUNTRACED) == pid);
	of = open_memory(pid, O_RDWR);
	error = request_of(fd, KTASK_IOC_POPULATE, of, (uintptr_t)addr, PART,
			   AHEAD, NULL);
	kill(pid, SIGKILL);
	status_of(pid);
	close(of);
	munmap(addr, PART);
	close(fd);
	CHECK(error == EFAULT);
	say_verdict(true, __func__, NULL);
}

/* ---- a page that never comes ---- */

/* Below what threads are made for in the process: ktask/kernel/client/device_populate.c. */
#define SMALL (8 * MIB)

static pid_t start_waiting(unsigned long what)
{
	pid_t pid = fork();
	char *addr;

	if (pid)
		return pid;
	addr = map_memory(SMALL);
	if (!addr || !register_range(addr, SMALL))
		_exit(1);
	do_request(open_device(), what, addr, SMALL,
		   what == KTASK_IOC_POPULATE ? KTASK_MEM_WRITE : 0, NULL);
	_exit(2);
}

static bool is_stuck(const char *pid, const char *name)
{
	char path[300], text[512], *state;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	read_file(path, text, sizeof(text));
	state = strrchr(text, ')');
	/* An idle one is in state I. */
	return state && strchr("DS", state[2]) && strstr(text, name);
}

static bool helper_is_stuck(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = atoi(entry->d_name) &&
			is_stuck(entry->d_name, "(ktask/");
	if (dir)
		closedir(dir);
	return found;
}

/* Return: its status, or -1 while it is there. */
static int end_within(pid_t pid, long patience_ms)
{
	int status;

	for (long ms = 0; ms < patience_ms; ms += 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? 1000 : WEXITSTATUS(status);
		sleep_ms(10);
	}
	return -1;
}

/* A helper that is the kernel's own thread gets no signal of the process.  Before
 * 6.3 the kernel refuses to pin such pages at once. */
static void a_killed_caller_waits_for_no_page(void)
{
	static const unsigned long requests[] = { KTASK_IOC_POPULATE,
						  KTASK_IOC_CLEAR,
						  KTASK_IOC_PIN };
	unsigned stuck = 0;
	int status = 0;

	/* It is offered before the caller waits, or never: also where this process
	 * has the other CPU just then. */
	write_file(ONLY_IDLE_MS, "0");
	for (int i = 0; i < 3 && status >= 0 && status != 1; i++) {
		pid_t pid = start_waiting(requests[i]);
		int ms;

		for (ms = 0; ms < 2000 && !helper_is_stuck(); ms += 10)
			sleep_ms(10);
		stuck += ms < 2000;
		kill(pid, SIGKILL);
		status = end_within(pid, PATIENCE_MS);
	}
	write_file(ONLY_IDLE_MS, "500");
	if (status < 0)
		say_verdict(false, __func__,
			    "it is there after %u helpers waited", stuck);
	else if (status == 1)
		say_verdict(true, __func__, "no userfaultfd");
	else if (!stuck)
		say_verdict(true, __func__, "no helper has begun");
	else
		say_verdict(true, __func__, NULL);
}

void test_clients(void)
{
	clear_makes_every_byte_zero();
	clear_makes_a_memfd_zero();
	memory_of_another_process_is_populated();
	memory_of_the_more_privileged_stays_theirs();
	the_populated_process_may_die_meanwhile();
	a_request_ends_with_the_populated_process();
	what_is_made_ahead_is_there();
	only_ordinary_memory_is_made_ahead();
	locked_memory_is_not_made_ahead();
	a_killed_caller_waits_for_no_page();
}
