/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever a client says to umtd, and whatever it does with what it was
 * handed, it learns nothing of another's threads, changes nothing of them,
 * attaches nothing, and keeps nobody from being served.
 */
#include "support/umtd.h"

#include <linux/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "ebpf/shared.h"

static struct umtd umtd;

/* ---- what is said ---- */

static const struct umt_ask good = { .version = UMT_BROKER_VERSION,
				     .op = UMT_BROKER_OPEN,
				     .ring_bytes = 65536 };

static int connect_broker(void)
{
	int fd = broker_connect();

	ktest_check(fd >= 0);
	return fd;
}

static bool is_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

static int ask_broker(int *fd, struct umt_ask asked)
{
	struct umt_answer answer;
	int fds[UMT_BROKER_FDS_MAX];
	int nr = broker_ask(fd, &asked, &answer, fds, UMT_BROKER_FDS_MAX);
	int i;

	for (i = 0; i < nr; i++)
		close(fds[i]);
	return nr < 0 ? nr : (int)answer.subscriber;
}

static int says_nonsense(void *unused)
{
	static const uint32_t ring_bytes[] = { 0, 1000, 8u << 20, 1u << 31 };
	struct umt_ask asked;
	size_t i;
	int fd, own;

	become_somebody(SOMEBODY);
	fd = connect_broker();
	asked = good;
	asked.version++;
	ktest_check(ask_broker(&fd, asked) == -EPROTONOSUPPORT);
	asked = good;
	asked.op = 3;
	ktest_check(ask_broker(&fd, asked) == -EINVAL);
	asked = good;
	asked.flags = UMT_INHERIT;
	ktest_check(ask_broker(&fd, asked) == -EINVAL);
	asked.flags = 1u << 31;
	ktest_check(ask_broker(&fd, asked) == -EINVAL);
	for (i = 0; i < KTEST_ARRAY_SIZE(ring_bytes); i++) {
		asked = good;
		asked.ring_bytes = ring_bytes[i];
		ktest_check(ask_broker(&fd, asked) == -EINVAL);
	}
	own = ask_broker(&fd, good);
	ktest_check(own >= 0);
	asked = good;
	asked.op = UMT_BROKER_DOORBELL;
	asked.subscriber = (uint32_t)own;
	asked.cpu = UINT32_MAX;
	ktest_check(ask_broker(&fd, asked) == -EINVAL);
	asked.subscriber = UINT32_MAX;
	ktest_check(ask_broker(&fd, asked) == -EINVAL);
	return 0;
}

/* Packets of every wrong length, of random bytes. */
static int sends_garbage(void *unused)
{
	char bytes[300];
	uint64_t random = ktest_seed();
	int i;

	become_somebody(SOMEBODY);
	for (i = 0; i < 100; i++) {
		size_t size = ktest_random_below(&random, sizeof(bytes)) + 1;
		int fd = connect_broker();
		size_t k;

		for (k = 0; k < size; k++)
			bytes[k] = (char)ktest_random(&random);
		if (size == sizeof(struct umt_ask))
			size--;
		ktest_check(send(fd, bytes, size, 0) == (ssize_t)size);
		ktest_check(is_hung_up(fd));
		close(fd);
	}
	return 0;
}

static int reads_no_answer(void *unused)
{
	struct umt_ask asked = good;
	int fd, i;

	become_somebody(SOMEBODY);
	fd = connect_broker();
	for (i = 0; i < 2000; i++)
		if (send(fd, &asked, sizeof(asked), MSG_NOSIGNAL) < 0)
			return 0;
	return 1;
}

/* Descriptors that nobody asked for must not fill its table; Linux 6.16 refuses
 * them. */
static int sends_descriptors(void *unused)
{
	struct umt_ask asked = good;
	struct iovec piece = { &asked, sizeof(asked) };
	char space[CMSG_SPACE(200 * sizeof(int))] = { 0 };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = space,
				  .msg_controllen = sizeof(space) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct umt_answer answer;
	int fds[200], i, fd;

	become_somebody(SOMEBODY);
	for (i = 0; i < 200; i++)
		fds[i] = 2;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	asked.op = 99;
	fd = connect_broker();
	for (i = 0; i < 50; i++) {
		if (sendmsg(fd, &message, 0) < 0 && errno == EPERM)
			return 0;
		ktest_check(recv(fd, &answer, sizeof(answer), 0) ==
			    sizeof(answer));
		ktest_check(answer.error == -EINVAL);
	}
	return 0;
}

static int nr_fds_of(pid_t pid)
{
	char command[100];
	FILE *pipe;
	int nr = -1;

	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", (int)pid);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%d", &nr), 1);
	pclose(pipe);
	return nr;
}

static void nonsense_is_refused(void **state)
{
	int before;

	umtd_begin(&umtd);
	/* So that the program is there from the beginning. */
	assert_int_equal(as_somebody(is_served, NULL), 0);
	before = nr_fds_of(umtd.pid);
	assert_int_equal(as_somebody(says_nonsense, NULL), 0);
	assert_int_equal(as_somebody(sends_garbage, NULL), 0);
	assert_int_equal(as_somebody(reads_no_answer, NULL), 0);
	assert_int_equal(as_somebody(sends_descriptors, NULL), 0);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	assert_true(holds_soon(nr_fds_of(umtd.pid) <= before));
	umtd_end(&umtd);
}

/* ---- how much is asked for ---- */

static int waits[2];

static int holds_many_connections(void *id)
{
	int fds[200], i, nr = 0;

	become_somebody(*(unsigned *)id);
	for (i = 0; i < 200; i++) {
		fds[i] = connect_broker();
		nr += ask_broker(&fds[i], (struct umt_ask){ 0 }) ==
		      -EPROTONOSUPPORT;
	}
	ktest_check(nr == 64);
	ktest_check(write(waits[1], "", 1) == 1);
	pause();
	return 1;
}

static void many_connections_are_one_users_only(void **state)
{
	unsigned id = 65533;
	char byte;
	pid_t pid;

	umtd_begin(&umtd);
	assert_int_equal(pipe(waits), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(holds_many_connections(&id));
	assert_int_equal(read(waits[0], &byte, 1), 1);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	kill(pid, SIGKILL);
	ktest_wait_for(pid, 60);
	umtd_end(&umtd);
}

#define OWNER 65532u
#define FIRST_SUBORDINATE 300000u

/* For this process and what it starts. */
static void give_subordinates(void)
{
	char path[] = "/tmp/subuid-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "root:1:5\nno colon\n%u:%u:100\n", OWNER,
			    FIRST_SUBORDINATE) > 0);
	close(fd);
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(path, "/etc/subuid", NULL, MS_BIND, NULL)) {
		unlink(path);
		ktest_skip("nothing can be mounted over /etc/subuid");
	}
	unlink(path);
}

static int is_refused(void *id)
{
	int fd;

	become_somebody(*(unsigned *)id);
	fd = connect_broker();
	ktest_check(ask_broker(&fd, (struct umt_ask){ 0 }) != -EPROTONOSUPPORT);
	return 0;
}

static void subordinates_share_what_their_user_has(void **state)
{
	unsigned ids[] = { FIRST_SUBORDINATE + 1, FIRST_SUBORDINATE + 2,
			   OWNER };
	char byte;
	pid_t pid;

	if (getuid())
		ktest_skip("only root may run umtd");
	give_subordinates();
	umtd_begin(&umtd);
	assert_int_equal(pipe(waits), 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(holds_many_connections(&ids[0]));
	assert_int_equal(read(waits[0], &byte, 1), 1);
	assert_int_equal(as_somebody(is_refused, &ids[1]), 0);
	assert_int_equal(as_somebody(is_refused, &ids[2]), 0);
	assert_int_equal(as_somebody(is_served, NULL), 0);
	kill(pid, SIGKILL);
	ktest_wait_for(pid, 60);
	umtd_end(&umtd);
}

/* ---- what was handed out ---- */

/* What a client is handed, without the library in between. */
struct handed {
	struct umt_answer answer;
	int fds[UMT_BROKER_FDS_MAX];
	int nr;
	int connection;
};

static void open_plainly(struct handed *handed)
{
	handed->connection = connect_broker();
	handed->nr = broker_ask(&handed->connection, &good, &handed->answer,
				handed->fds, UMT_BROKER_FDS_MAX);
	ktest_check(handed->nr > UMT_FD_LINKS);
}

static long call_bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

/* @cpu: where the kernel is to run it, whoever is there; -1: here */
static int run_control_on(int cpu, const struct handed *handed, enum umt_op op,
			  uint32_t subscriber, const __u64 *token)
{
	uint64_t args[UMT_NR_ARGS] = { op, subscriber, (uintptr_t)token };
	union bpf_attr attr = { 0 };
	long error;

	args[UMT_ARG_TOKEN] = token[0];
	args[UMT_ARG_TOKEN + 1] = token[1];
	attr.test.prog_fd = (uint32_t)handed->fds[UMT_FD_CONTROL];
	attr.test.ctx_in = (uint64_t)(uintptr_t)args;
	attr.test.ctx_size_in = sizeof(args);
	if (cpu >= 0) {
		attr.test.cpu = (uint32_t)cpu;
		attr.test.flags = BPF_F_TEST_RUN_ON_CPU;
	}
	error = call_bpf(BPF_PROG_TEST_RUN, &attr);
	return error ? (int)error : (int)attr.test.retval;
}

static int run_control(const struct handed *handed, enum umt_op op,
		       uint32_t subscriber, const __u64 *token)
{
	return run_control_on(-1, handed, op, subscriber, token);
}

static int cannot_name_anothers(void *unused)
{
	struct handed mine, theirs;
	__u64 guess[2] = { 0 };
	struct umt_ask asked;
	pid_t pid;

	become_somebody(SOMEBODY);
	open_plainly(&theirs);
	open_plainly(&mine);
	ktest_check(mine.answer.subscriber != theirs.answer.subscriber);
	ktest_check(memcmp(mine.answer.token, theirs.answer.token, 16) != 0);
	/* By number, without the token. */
	ktest_check(run_control(&mine, UMT_OP_ADD, theirs.answer.subscriber,
				guess) == -EPERM);
	ktest_check(run_control(&mine, UMT_OP_ADD, theirs.answer.subscriber,
				mine.answer.token) == -EPERM);
	ktest_check(run_control(&mine, UMT_OP_ADD, UINT32_MAX,
				mine.answer.token) == -EPERM);
	asked = good;
	asked.op = UMT_BROKER_DOORBELL;
	asked.subscriber = theirs.answer.subscriber;
	ktest_check(ask_broker(&mine.connection, asked) == -EINVAL);
	asked.op = UMT_BROKER_CLOSE;
	ktest_check(ask_broker(&mine.connection, asked) == -EINVAL);
	/* With the token, by another process than the first to use it. */
	ktest_check(holds_soon(run_control(&theirs, UMT_OP_ADD,
					   theirs.answer.subscriber,
					   theirs.answer.token) != -EAGAIN));
	ktest_check(run_control(&theirs, UMT_OP_ADD, theirs.answer.subscriber,
				theirs.answer.token) == -EEXIST);
	pid = fork();
	if (!pid)
		_exit(run_control(&theirs, UMT_OP_ADD, theirs.answer.subscriber,
				  theirs.answer.token) != -EPERM);
	ktest_check(ktest_wait_for(pid, 60) == 0);
	return 0;
}

/* The descriptors are no means to watch or slow the rest of the machine. */
static int cannot_attach_or_detach(void *unused)
{
	static const char *const tracepoints[] = { "sys_enter", "sys_exit",
						   "sched_switch",
						   "sched_wakeup",
						   "mm_page_alloc" };
	struct handed handed;
	union bpf_attr attr;
	size_t i;
	int k;

	become_somebody(SOMEBODY);
	open_plainly(&handed);
	for (i = 0; i < KTEST_ARRAY_SIZE(tracepoints); i++) {
		memset(&attr, 0, sizeof(attr));
		attr.raw_tracepoint.name = (uint64_t)(uintptr_t)tracepoints[i];
		attr.raw_tracepoint.prog_fd =
			(uint32_t)handed.fds[UMT_FD_CONTROL];
		ktest_check(call_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) ==
			    -EINVAL);
	}
	for (k = UMT_FD_LINKS; k < handed.nr; k++) {
		memset(&attr, 0, sizeof(attr));
		attr.link_detach.link_fd = (uint32_t)handed.fds[k];
		ktest_check(call_bpf(BPF_LINK_DETACH, &attr) < 0);
		memset(&attr, 0, sizeof(attr));
		attr.link_update.link_fd = (uint32_t)handed.fds[k];
		attr.link_update.new_prog_fd =
			(uint32_t)handed.fds[UMT_FD_CONTROL];
		ktest_check(call_bpf(BPF_LINK_UPDATE, &attr) < 0);
	}
	return 0;
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ktest_check(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* The first CPU from @cpu on that we may use, or -1. */
static int allowed_cpu(int cpu)
{
	cpu_set_t set;

	ktest_check(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set))
		cpu++;
	return cpu < CPU_SETSIZE ? cpu : -1;
}

/* The kernel runs the program on any CPU, in the name of whoever is there. */
static int cannot_add_who_runs_elsewhere(void *unused)
{
	int here = allowed_cpu(0), there = allowed_cpu(here + 1);
	struct handed handed;
	struct umt_core *core;
	pid_t victim;
	int i;

	if (there < 0)
		return 0;
	become_somebody(SOMEBODY);
	open_plainly(&handed);
	victim = fork();
	if (!victim) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin_to(there);
		for (;;)
			;
	}
	pin_to(here);
	core = mmap(NULL, (handed.answer.nr_cores + 1) * sizeof(*core),
		    PROT_READ, MAP_SHARED, handed.fds[UMT_FD_TABLE], 0);
	ktest_check(core != MAP_FAILED);
	for (i = 0; i < 100; i++) {
		ktest_check(run_control_on(there, &handed, UMT_OP_ADD,
					   handed.answer.subscriber,
					   handed.answer.token) != 0);
		usleep(1000);
	}
	ktest_check(core[there + 1].moved_in == 0);
	/* Nobody else has become the process that may. */
	ktest_check(holds_soon(run_control(&handed, UMT_OP_ADD,
					   handed.answer.subscriber,
					   handed.answer.token) != -EAGAIN));
	ktest_check(run_control(&handed, UMT_OP_ADD, handed.answer.subscriber,
				handed.answer.token) == -EEXIST);
	kill(victim, SIGKILL);
	ktest_wait_for(victim, 60);
	return 0;
}

/*
 * What its own process executes, perhaps with more rights, is seen no more:
 * here by a child that has the table, and gives the new program its cues.
 */
struct talk {
	int cues[2], answers[2];
};

static void await_byte(int fd)
{
	char byte;

	ktest_check(read(fd, &byte, 1) == 1);
}

static int sees_nothing_of(const struct umt *subscriber,
			   const struct talk *talk)
{
	uint64_t sleeps;
	int i;

	ktest_check(write(talk->cues[1], "", 1) == 1);
	close(talk->cues[0]);
	close(talk->answers[1]);
	await_byte(talk->answers[0]);
	ktest_check(ready_of(subscriber) == 0);
	ktest_check(sums_of(subscriber).moved_out >= 1);
	sleeps = sums_of(subscriber).sleeps;
	for (i = 0; i < 4; i++) {
		ktest_check(write(talk->cues[1], "\n", 1) == 1);
		await_byte(talk->answers[0]);
	}
	ktest_check(sums_of(subscriber).sleeps == sleeps);
	return 0;
}

/*
 * It blocks for each line that it is told, and says a line for each.  The child
 * comes first: it has let go of the connection then, whose end at exec is the
 * end of the subscriber, and must not come before the kernel tells of the exec.
 */
static void execute_shell(const struct talk *talk)
{
	await_byte(talk->cues[0]);
	ktest_check(dup2(talk->cues[0], STDIN_FILENO) >= 0);
	ktest_check(dup2(talk->answers[1], STDOUT_FILENO) >= 0);
	close(talk->cues[0]);
	close(talk->cues[1]);
	close(talk->answers[0]);
	close(talk->answers[1]);
	execlp("sh", "sh", "-c",
	       "echo; while read -r line; do sleep .02; echo; done", NULL);
}

static int executes_another(void *result)
{
	struct umt *subscriber;
	struct talk talk;

	become_somebody(SOMEBODY);
	subscriber = subscribe_by_umtd(UMT_TRACE);
	ktest_check(subscriber != NULL);
	ktest_check(pipe(talk.cues) == 0 && pipe(talk.answers) == 0);
	if (!fork()) {
		sees_nothing_of(subscriber, &talk);
		ktest_check(write(*(int *)result, "", 1) == 1);
		_exit(0);
	}
	ktest_check(umt_thread_add(subscriber) == 0);
	execute_shell(&talk);
	return 1;
}

static void a_program_is_not_its_predecessor(void **state)
{
	int result[2];
	char byte;

	umtd_begin(&umtd);
	assert_int_equal(pipe(result), 0);
	assert_int_equal(as_somebody(executes_another, &result[1]), 0);
	close(result[1]);
	assert_int_equal(read(result[0], &byte, 1), 1);
	close(result[0]);
	umtd_end(&umtd);
}

static void what_is_handed_out_is_for_ones_own(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(cannot_name_anothers, NULL), 0);
	assert_int_equal(as_somebody(cannot_attach_or_detach, NULL), 0);
	assert_int_equal(as_somebody(cannot_add_who_runs_elsewhere, NULL), 0);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(nonsense_is_refused),
	   KTEST(many_connections_are_one_users_only),
	   KTEST(what_is_handed_out_is_for_ones_own),
	   KTEST(a_program_is_not_its_predecessor),
	   KTEST(subordinates_share_what_their_user_has))
