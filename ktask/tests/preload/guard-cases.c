/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What surrounds a large call: system call filters that kill for what the
 * library would do, handlers that leave by siglongjmp(), cancellation,
 * namespaces, an allocator that calls with its lock held, little stack.
 *
 * The first argument names the case, the second a number for it.  Prints "ok"
 * or what went wrong.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "probe.h"
#include "refuse.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Allocates nothing: a handler may leave from the middle of it. */
static const char *populate_once(void)
{
	unsigned char resident[SIZE_BYTES / PAGE_BYTES];
	char *addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	const char *wrong = NULL;

	if (addr == MAP_FAILED)
		return "mmap failed";
	if (mincore(addr, SIZE_BYTES, resident) ||
	    memchr(resident, 0, sizeof(resident)))
		wrong = "mmap left pages out";
	if (munmap(addr, SIZE_BYTES))
		wrong = "munmap failed";
	return wrong;
}

/* A filter with @action for the system call @number; all others pass. */
static void set_filter(unsigned number, unsigned action, enum refuse_how how)
{
	struct rlimit no_core = { 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	must_hold(refuse_with(number, action, how), "filter");
}

/* So large that the kernel's engine may be asked. */
#define LARGE_BYTES ((size_t)64 << 20)

static const char *populate_large(int unused)
{
	char *addr = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	(void)unused;
	if (addr == MAP_FAILED || munmap(addr, LARGE_BYTES))
		return "a large call failed";
	return NULL;
}

static const char *filter_kills_large(int number)
{
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_SECCOMP);
	return populate_large(0);
}

/* Before the first large call, and with helpers there already. */
static const char *filter_kills(int number)
{
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_SECCOMP);
	return populate_once();
}

static const char *filter_kills_later(int number)
{
	const char *wrong = populate_once();

	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	return wrong ? wrong : populate_once();
}

static const char *filter_refuses(int number)
{
	set_filter((unsigned)number, SECCOMP_RET_ERRNO | EPERM, REFUSE_SECCOMP);
	return populate_once();
}

/*
 * One child for each system call there is: which of them are fatal.  Large
 * calls of every kind, and an ordinary end.
 */
static void live_with(unsigned number, int later)
{
	size_t len = SIZE_BYTES / 2;
	char *addr;

	if (later)
		populate_once();
	set_filter(number, SECCOMP_RET_KILL_PROCESS, REFUSE_SECCOMP);
	populate_large(0);
	addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	madvise(addr, len, MADV_POPULATE_WRITE);
	mlock(addr, len);
	munlock(addr, len);
	madvise(addr, len, MADV_DONTNEED);
	mlockall(MCL_CURRENT);
	munmap(addr, len);
	exit(0);
}

static const char *filter_each(int later, unsigned first, unsigned step)
{
	for (unsigned number = first; number < 480; number += step) {
		pid_t child;
		int status;

		/* x86 has none in between. */
		if (number >= 335 && number < 424)
			continue;
		fflush(stdout);
		child = fork();
		if (!child)
			live_with(number, later);
		must_hold(waitpid(child, &status, 0) == child, "waitpid");
		if (status)
			printf("%u: %s\n", number, strsignal(WTERMSIG(status)));
	}
	return NULL;
}

/* Becomes the rest of the command line behind a filter. */
static const char *filter_before(int number, char **command)
{
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	execvp(command[0], command);
	return "exec failed";
}

static const char *outcome_of(pid_t child)
{
	int status;

	must_hold(waitpid(child, &status, __WALL) == child, "waitpid");
	return WIFEXITED(status) && !WEXITSTATUS(status) ? NULL
							 : "the child died";
}

static const char *clone_by_structure(void)
{
#ifdef SYS_clone3
	/* struct clone_args, of which the fifth is the signal at the end. */
	uint64_t args[8] = { 0, 0, 0, 0, SIGCHLD };
	long child = syscall(SYS_clone3, args, sizeof(args));

	if (child == 0)
		_exit(0);
	if (child > 0)
		return outcome_of((pid_t)child);
#endif
	return NULL;
}

/* Whatever comes behind the filter. */
static const char *filter_lasts(int number)
{
	const char *wrong;

	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	if (unshare(0))
		return "unshare failed";
	if (setns(-1, 0) != -1 || errno != EBADF)
		return "setns took no descriptor";
	wrong = clone_by_structure();
	set_filter(SYS_mount, SECCOMP_RET_ERRNO | EPERM, REFUSE_PRCTL);
	return wrong ? wrong : populate_once();
}

/* Memory that is being made present when the filter is set. */
static const char *filter_over_prefault(int number)
{
	char *addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_hold(addr != MAP_FAILED, "mmap");
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	return munmap(addr, SIZE_BYTES) ? "munmap failed" : NULL;
}

/* Calls that the shim would first ask something about. */
static const char *filter_over_files(int number)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	char *addr;

	must_hold(fd >= 0 && !ftruncate(fd, SIZE_BYTES), "memfd_create");
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (addr == MAP_FAILED || munmap(addr, SIZE_BYTES))
		return "a call failed";
	return NULL;
}

static const char *filter_over_segments(int number)
{
	int id = shmget(IPC_PRIVATE, SIZE_BYTES, IPC_CREAT | 0600);
	void *addr = shmat(id, NULL, 0);

	must_hold(addr != (void *)-1 && !shmctl(id, IPC_RMID, NULL), "shmget");
	set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS, REFUSE_PRCTL);
	/* It is there for as long as it is attached. */
	return shmat(id, NULL, 0) == (void *)-1 ? "shmat failed" : NULL;
}

/* A fork of which the library does not know, and its filter. */
static const char *filter_in_clone(int number)
{
	const char *wrong = populate_once();
	pid_t child;

	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS,
			   REFUSE_PRCTL);
		_exit(populate_once() ? 1 : 0);
	}
	if (!wrong)
		wrong = outcome_of(child);
	return wrong ? wrong : populate_once();
}

/* It shares the memory, but the filter is its own. */
static const char *filter_in_vfork(int number)
{
	const char *wrong = populate_once();
	pid_t child = vfork();

	if (child == 0) {
		set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS,
			   REFUSE_PRCTL);
		_exit(0);
	}
	if (!wrong)
		wrong = outcome_of(child);
	return wrong ? wrong : populate_once();
}

/* And then it becomes another program, without the shim. */
static const char *filter_in_vfork_exec(int number)
{
	char *none[] = { NULL };
	const char *wrong = populate_once();
	pid_t child = vfork();

	if (child == 0) {
		set_filter((unsigned)number, SECCOMP_RET_KILL_PROCESS,
			   REFUSE_PRCTL);
		execle("/bin/true", "true", (char *)NULL, none);
		_exit(1);
	}
	return wrong ? wrong : outcome_of(child);
}

/* What libseccomp asks: nothing is set by it. */
static const char *filter_questions(int unused)
{
	(void)unused;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1 ||
	    errno != EFAULT)
		return "NULL was taken for a filter";
	errno = 0;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8) != -1 ||
	    errno != EFAULT)
		return "a wild address was taken for a filter";
	return populate_once();
}

static sigjmp_buf back;
static volatile sig_atomic_t nr_alarms;

static void jump_back(int sig)
{
	(void)sig;
	nr_alarms++;
	siglongjmp(back, 1);
}

/* A handler that leaves while large calls follow one another. */
static const char *jump_from_handler(int unused)
{
	struct sigaction action = { .sa_handler = jump_back };
	struct itimerval soon = { .it_value = { 0, 2500 } };
	volatile int round = 0;

	(void)unused;
	sigaction(SIGALRM, &action, NULL);
	while (round < 40) {
		round++;
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &soon, NULL);
			for (;;)
				populate_once();
		}
	}
	if (nr_alarms != 40)
		return "an alarm was lost";
	return populate_once();
}

static const char *die_by_signal(int sig)
{
	pid_t child = fork();
	int status;

	if (!child) {
		raise(sig);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == sig
		       ? populate_once()
		       : "the signal did not kill";
}

static void *populate_for_ever(void *unused)
{
	(void)unused;
	for (;;) {
		populate_once();
		pthread_testcancel();
	}
	return NULL;
}

static const char *cancel_threads(int unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *outcome;

		must_hold(
			!pthread_create(&thread, NULL, populate_for_ever, NULL),
			"pthread_create");
		usleep(1000 + 200 * (unsigned)i);
		pthread_cancel(thread);
		pthread_join(thread, &outcome);
		if (outcome != PTHREAD_CANCELED)
			return "not cancelled";
	}
	return populate_once();
}

/* A user namespace is refused to a process with threads. */
static const char *unshare_users(int unused)
{
	const char *wrong = populate_once();

	(void)unused;
	if (!wrong && unshare(CLONE_NEWUSER) && errno == EINVAL)
		wrong = "unshare saw threads";
	return wrong ? wrong : populate_once();
}

/* An empty root: neither /proc nor /sys nor /dev to look at. */
static const char *in_chroot(int later)
{
	char directory[] = "/tmp/ktask-root-XXXXXX";
	const char *wrong = later ? populate_once() : NULL;

	must_hold(mkdtemp(directory) != NULL, "mkdtemp");
	if (chroot(directory) || chdir("/"))
		wrong = "chroot failed";
	rmdir("/");
	for (int i = 0; i < 3 && !wrong; i++)
		wrong = populate_once();
	return wrong;
}

/* All threads of a process have its identity, helpers too. */
static const char *gives_up_rights(int later)
{
	const char *wrong = later ? populate_once() : NULL;
	struct dirent *entry;
	DIR *tasks;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return "the rights stayed";
	tasks = opendir("/proc/self/task");
	must_hold(tasks != NULL, "opendir");
	while ((entry = readdir(tasks))) {
		struct stat task;

		if (entry->d_name[0] != '.' &&
		    !fstatat(dirfd(tasks), entry->d_name, &task, 0) &&
		    task.st_uid != 65534 && geteuid() == 0)
			wrong = "a thread kept its rights";
	}
	closedir(tasks);
	for (int i = 0; i < 3 && !wrong; i++)
		wrong = populate_once();
	return wrong ? wrong : setuid(0) ? NULL : "rights came back";
}

static int segment;

/* Calls that are cancellation points, and those that are none. */
static void *call_cancelled(void *call)
{
	static char page[4096] __attribute__((aligned(4096)));
	int fd = memfd_create("cancel", 0);
	char *addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	struct iovec range = { addr, SIZE_BYTES };
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	pthread_cancel(pthread_self());
	switch (*(int *)call) {
	case 0:
		mmap(NULL, SIZE_BYTES, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		break;
	case 1:
		madvise(addr, SIZE_BYTES, MADV_POPULATE_WRITE);
		break;
	case 2:
		mlock(addr, SIZE_BYTES);
		break;
	case 3:
		munlock(addr, SIZE_BYTES);
		break;
	case 4:
		munmap(addr, SIZE_BYTES);
		break;
	case 5:
		mlockall(MCL_CURRENT);
		munlockall();
		break;
	case 6:
		fallocate(fd, 0, 0, SIZE_BYTES);
		break;
	case 7:
		posix_fallocate(fd, 0, SIZE_BYTES);
		break;
	case 8:
		mremap(addr, SIZE_BYTES, SIZE_BYTES / 2, 0);
		break;
	case 9:
		madvise(page, 0, MADV_NORMAL);
		break;
	case 10:
		shmdt(shmat(segment, NULL, 0));
		break;
	case 11:
		process_madvise(pidfd, &range, 1, MADV_DONTNEED, 0);
		break;
	case 12:
		madvise(addr, SIZE_BYTES, MADV_COLLAPSE);
		break;
	case 13:
		mlock(addr, PAGE_BYTES);
		mlock(addr + PAGE_BYTES, SIZE_BYTES / 2);
		break;
	case 14:
		mmap(NULL, SIZE_BYTES / 2, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
		break;
	case 15:
		addr = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mremap(addr, PAGE_BYTES, SIZE_BYTES, MREMAP_MAYMOVE);
		break;
	default:
		mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	}
	return NULL;
}

static const char *cancellation_points(int unused)
{
	(void)unused;
	segment = shmget(IPC_PRIVATE, SIZE_BYTES, 0600);
	for (int call = 0; call < 17; call++) {
		pthread_t thread;
		void *outcome;

		must_hold(!pthread_create(&thread, NULL, call_cancelled, &call),
			  "pthread_create");
		pthread_join(thread, &outcome);
		printf("%d: %d\n", call, outcome == PTHREAD_CANCELED);
	}
	shmctl(segment, IPC_RMID, NULL);
	return populate_once();
}

/* Each kind of large call, the first of this process among them. */
static void *call_each(void *wrong)
{
	int fd = memfd_create("little", MFD_CLOEXEC);
	char *addr;

	*(const char **)wrong = populate_once();
	addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (madvise(addr, SIZE_BYTES, MADV_POPULATE_WRITE) ||
	    madvise(addr, SIZE_BYTES, MADV_DONTNEED) ||
	    munmap(addr, SIZE_BYTES) || fallocate(fd, 0, 0, SIZE_BYTES))
		*(const char **)wrong = "a call failed";
	addr = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	/* There may be a limit on what is locked. */
	mlock(addr, SIZE_BYTES);
	munlock(addr, SIZE_BYTES);
	return NULL;
}

/* Behind a guard that no frame steps over. */
static const char *little_stack(int kib)
{
	const size_t guard_bytes = 1 << 20, bytes = (size_t)kib << 10;
	const char *wrong = "the thread said nothing";
	char *guard = mmap(NULL, guard_bytes + bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = guard + guard_bytes;
	pthread_attr_t attr;
	pthread_t thread;

	must_hold(guard != MAP_FAILED &&
			  !mprotect(stack, bytes, PROT_READ | PROT_WRITE),
		  "a stack");
	must_hold(!pthread_attr_init(&attr) &&
			  !pthread_attr_setstack(&attr, stack, bytes) &&
			  !pthread_create(&thread, &attr, call_each, &wrong) &&
			  !pthread_join(thread, NULL),
		  "a thread");
	return wrong;
}

struct named {
	const char *name;
	const char *(*func)(int number);
};

static const struct named cases[] = {
	{ "large", populate_large },
	{ "filter-kills", filter_kills },
	{ "filter-kills-large", filter_kills_large },
	{ "filter-kills-later", filter_kills_later },
	{ "filter-refuses", filter_refuses },
	{ "filter-lasts", filter_lasts },
	{ "filter-over-prefault", filter_over_prefault },
	{ "filter-over-files", filter_over_files },
	{ "filter-over-segments", filter_over_segments },
	{ "filter-in-clone", filter_in_clone },
	{ "filter-in-vfork", filter_in_vfork },
	{ "filter-in-vfork-exec", filter_in_vfork_exec },
	{ "filter-questions", filter_questions },
	{ "jumps", jump_from_handler },
	{ "dies", die_by_signal },
	{ "cancelled", cancel_threads },
	{ "namespaces", unshare_users },
	{ "chroot", in_chroot },
	{ "rights", gives_up_rights },
	{ "cancellation-points", cancellation_points },
	{ "little-stack", little_stack },
};

int main(int argc, char **argv)
{
	int number = argc > 2 ? atoi(argv[2]) : 0;
	const char *wrong = "no such case";

	if (argc > 3 && !strcmp(argv[1], "filter-before"))
		wrong = filter_before(number, argv + 3);
	if (argc > 4 && !strcmp(argv[1], "filter-each"))
		wrong = filter_each(number, (unsigned)atoi(argv[3]),
				    (unsigned)atoi(argv[4]));
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(argv[1], cases[i].name))
			wrong = cases[i].func(number);
	puts(wrong ? wrong : "ok");
	return wrong != NULL;
}
