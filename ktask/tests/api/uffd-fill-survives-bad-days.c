/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd fill: sources that end, stall or fail, processes that die, memory that is
 * unmapped or forked, and what cannot be: an error, and where; never a hang.
 */
#include "ktest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "failalloc.h"
#include "syscalls.h"
#include "uffd.h"

#define LEN (16 * MIB)

struct target {
	int uffd;
	char *at;
	int socket; /* to another process; it lives until this is closed */
};

static struct target open_target(uint64_t features)
{
	struct target target = { uffd_open(features), map_private(LEN), -1 };

	if (target.uffd >= 0)
		assert_true(uffd_register(target.uffd, target.at, LEN));
	return target;
}

static void close_target(struct target *target)
{
	close(target->uffd);
	munmap(target->at, LEN);
}

static struct ktask_uffd_ctl fill_of(const struct target *target)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;

	fill.uffd = target->uffd;
	fill.addr = target->at;
	fill.len = LEN;
	return fill;
}

static int give_words(void *buf, size_t len, uint64_t offset, void *arg)
{
	uffd_words(buf, len, offset);
	return 0;
}

/* Return: what it said; everything below fail_offset that is there is right. */
static int fill_and_check(const struct ktask_uffd_ctl *fill,
			  struct ktask_result *result)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	const char *at = fill->addr;
	int error;

	memset(result, 0, sizeof(*result));
	result->struct_size = sizeof(*result);
	opts.result = result;
	errno = 1234;
	error = ktask_uffd_fill(fill, &opts);
	assert_int_equal(errno, 1234);
	assert_int_equal(result->error, error);
	assert_int_equal(result->fail_offset % page_bytes(), 0);
	for (size_t pos = 0; pos < LEN; pos += page_bytes())
		if (pages_present(at + pos, page_bytes()))
			assert_int_equal(
				uffd_wrong(at + pos, page_bytes(), pos),
				SIZE_MAX);
	return error;
}

static void a_truncated_file_is_told(void **state)
{
	const size_t lens[] = { 0, 4096, 5 * MIB, LEN - 4096 };
	struct ktask_result result;

	need_uffd();
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(lens); i++) {
		struct target target = open_target(0);
		struct ktask_uffd_ctl fill = fill_of(&target);

		fill.fd = uffd_image(LEN);
		assert_int_equal(ftruncate(fill.fd, (off_t)lens[i]), 0);
		assert_int_equal(fill_and_check(&fill, &result), -ENODATA);
		assert_int_equal(result.fail_offset, lens[i]);
		close(fill.fd);
		close_target(&target);
	}
}

static int fail_in_the_middle(void *buf, size_t len, uint64_t offset, void *arg)
{
	if (offset + len > LEN / 2)
		return *(int *)arg;
	return give_words(buf, len, offset, NULL);
}

static void errors_of_the_source_pass(void **state)
{
	int codes[] = { -EIO, 77, -1 };
	struct ktask_result result;

	need_uffd();
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(codes); i++) {
		struct target target = open_target(0);
		struct ktask_uffd_ctl fill = fill_of(&target);

		fill.source_func = fail_in_the_middle;
		fill.source_arg = &codes[i];
		assert_int_equal(fill_and_check(&fill, &result), codes[i]);
		/* In the block that ends behind it. */
		assert_true(result.fail_offset <= LEN / 2);
		assert_true(result.fail_offset + 64 * 1024 > LEN / 2);
		close_target(&target);
	}
}

/* A socket keeps as much, so that the sender need not run meanwhile. */
#define AT_ONCE ((size_t)64 * 1024)

struct sender {
	int fd;
	size_t len;
	bool hangs_up;
};

static void *send_some(void *arg)
{
	struct sender *sender = arg;
	static char buf[AT_ONCE];

	for (uint64_t pos = 0; pos < sender->len; pos += sizeof(buf)) {
		uffd_words(buf, sizeof(buf), pos);
		if (send(sender->fd, buf, sizeof(buf), MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(buf))
			break;
	}
	if (sender->hangs_up)
		shutdown(sender->fd, SHUT_RDWR);
	return NULL;
}

static int fill_from_sender(struct sender *sender, unsigned stall_ms,
			    const struct ktask_opts *opts,
			    struct ktask_result *result)
{
	struct target target = open_target(0);
	struct ktask_uffd_ctl fill = fill_of(&target);
	struct ktask_opts own = *opts;
	pthread_t thread;
	bool beside;
	int ends[2], error;

	memset(result, 0, sizeof(*result));
	result->struct_size = sizeof(*result);
	own.result = result;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	sender->fd = ends[1];
	fill.fd = ends[0];
	fill.flags = KTASK_UFFD_STREAM;
	fill.stall_ms = stall_ms;
	beside = sender->len > AT_ONCE;
	if (beside)
		assert_int_equal(
			pthread_create(&thread, NULL, send_some, sender), 0);
	else
		send_some(sender);
	error = ktask_uffd_fill(&fill, &own);
	if (beside)
		pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
	close_target(&target);
	return error;
}

static const struct ktask_opts no_opts = KTASK_OPTS_INIT;

static void a_peer_that_hangs_up_is_told(void **state)
{
	struct sender sender = { .len = 6 * MIB, .hangs_up = true };
	struct ktask_result result;

	need_uffd();
	assert_int_equal(fill_from_sender(&sender, 0, &no_opts, &result),
			 -ENODATA);
	assert_int_equal(result.fail_offset, 6 * MIB);
	sender.len = 0;
	assert_int_equal(fill_from_sender(&sender, 0, &no_opts, &result),
			 -ENODATA);
	assert_int_equal(result.fail_offset, 0);
}

static int stop_late(const struct ktask_progress *progress, void *arg)
{
	/* While nothing comes it is asked all the same. */
	return progress->elapsed_ns > 50000000;
}

static void a_stream_that_stalls_ends(void **state)
{
	struct sender sender = { .len = AT_ONCE };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_result result;

	need_uffd();
	assert_int_equal(fill_from_sender(&sender, 50, &opts, &result),
			 -ETIMEDOUT);
	assert_int_equal(result.fail_offset, AT_ONCE);
	opts.deadline_ns = 50000000;
	assert_int_equal(fill_from_sender(&sender, 0, &opts, &result),
			 -ETIMEDOUT);
	opts.deadline_ns = 0;
	opts.progress_func = stop_late;
	opts.progress_ms = 5;
	assert_int_equal(fill_from_sender(&sender, 0, &opts, &result),
			 -ECANCELED);
}

/* From there on memory moves, without an end: the kernel asks to try again. */
static char *moving;

static bool refuse_copying(long number, const long args[6], long *result)
{
	const struct uffdio_copy *copy = (void *)args[2];

	if (number != SYS_ioctl || args[1] != (long)UFFDIO_COPY)
		return false;
	*result = -EAGAIN;
	return copy->dst + copy->len > (uintptr_t)moving;
}

/* Which is not the stall of a stream, whose bytes come later. */
static void a_stream_whose_pages_cannot_be_made_is_told(void **state)
{
	struct ktask_result result;

	need_uffd();
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct target target = open_target(0);
		struct ktask_uffd_ctl fill = fill_of(&target);
		struct ktask_opts opts = KTASK_OPTS_INIT;

		memset(&result, 0, sizeof(result));
		result.struct_size = sizeof(result);
		opts.result = &result;
		opts.max_threads = threads;
		fill.fd = uffd_image(LEN);
		fill.flags = KTASK_UFFD_STREAM;
		moving = target.at + 5 * MIB;
		syscalls_answer = refuse_copying;
		assert_int_equal(ktask_uffd_fill(&fill, &opts), -EAGAIN);
		syscalls_answer = NULL;
		assert_int_equal(result.error, -EAGAIN);
		assert_true(result.fail_offset + 64 * 1024 > 5 * MIB);
		close(fill.fd);
		close_target(&target);
	}
}

struct killer {
	pid_t pid;
	uint64_t at;
};

static int kill_the_process(void *buf, size_t len, uint64_t offset, void *arg)
{
	struct killer *killer = arg;

	if (offset >= killer->at) {
		kill(killer->pid, SIGKILL);
		/* Gone, not only about to. */
		waitid(P_PID, (id_t)killer->pid, NULL, WEXITED | WNOWAIT);
	}
	return give_words(buf, len, offset, NULL);
}

static void send_descriptor(int socket, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	sendmsg(socket, &message, 0);
}

static int receive_descriptor(int socket)
{
	char byte, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Another process, whose memory is that of its own. */
static pid_t start_process(struct target *target)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	target->at = map_private(LEN);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int fd = uffd_open(0);
		char last, byte;

		close(ends[0]);
		if (fd >= 0 && uffd_register(fd, target->at, LEN))
			send_descriptor(ends[1], fd);
		/* Waits for a page, and then until it may go. */
		last = ((volatile char *)target->at)[LEN - 1];
		_exit(read(ends[1], &byte, 1) + last + 100);
	}
	close(ends[1]);
	target->socket = ends[0];
	target->uffd = receive_descriptor(ends[0]);
	return pid;
}

static void a_process_that_dies_is_told(void **state)
{
	struct killer killer = { .at = LEN / 4 };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill;
	struct target target;

	need_uffd();
	killer.pid = start_process(&target);
	assert_true(target.uffd >= 0);
	opts.result = &result;
	opts.max_threads = 1;
	fill = fill_of(&target);
	fill.source_func = kill_the_process;
	fill.source_arg = &killer;
	assert_int_equal(ktask_uffd_fill(&fill, &opts), -ESRCH);
	assert_int_equal(waitpid(killer.pid, NULL, 0), killer.pid);
	close(target.socket);
	close_target(&target);
}

/* And one that lives gets what it waits for. */
static void another_process_is_filled(void **state)
{
	struct ktask_uffd_ctl fill;
	struct target target;
	pid_t pid;

	need_uffd();
	pid = start_process(&target);
	assert_true(target.uffd >= 0);
	fill = fill_of(&target);
	fill.source_func = give_words;
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	close(target.socket);
	assert_int_equal(ktest_wait_for(pid, 60),
			 ((int)(char)(uffd_word(LEN - 8) >> 56) + 100) % 256
				 << 8);
	close_target(&target);
}

static int unmap_the_rest(void *buf, size_t len, uint64_t offset, void *arg)
{
	if (offset >= LEN / 2)
		munmap((char *)arg + LEN / 2, LEN / 2);
	return give_words(buf, len, offset, NULL);
}

static void memory_that_goes_is_told(void **state)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill;
	struct target target;

	need_uffd();
	target = open_target(0);
	fill = fill_of(&target);
	fill.source_func = unmap_the_rest;
	fill.source_arg = target.at;
	opts.max_threads = 1;
	assert_int_equal(ktask_uffd_fill(&fill, &opts), -ENOENT);
	close_target(&target);
}

static void *touch_byte(void *arg)
{
	return (void *)(uintptr_t) * (volatile char *)arg;
}

static void pages_outside_are_told(void **state)
{
	struct uffdio_range rest;
	struct ktask_result result;
	struct ktask_uffd_ctl fill;
	struct target target;
	pthread_t thread;

	need_uffd();
	target = open_target(0);
	assert_int_equal(
		pthread_create(&thread, NULL, touch_byte, target.at + LEN - 1),
		0);
	assert_true(uffd_waits(target.uffd));
	fill = fill_of(&target);
	fill.len = LEN / 2;
	fill.source_func = give_words;
	assert_int_equal(fill_and_check(&fill, &result), -ERANGE);
	/* It waits still, and who reads next is asked. */
	assert_true(uffd_waits(target.uffd));
	rest.start = (uintptr_t)target.at;
	rest.len = LEN;
	assert_int_equal(ioctl(target.uffd, UFFDIO_UNREGISTER, &rest), 0);
	pthread_join(thread, NULL);
	close_target(&target);
}

static void *remove_pages(void *arg)
{
	madvise(arg, LEN, MADV_DONTNEED);
	return NULL;
}

static void events_are_refused(void **state)
{
	struct ktask_result result;
	struct ktask_uffd_ctl fill;
	struct target target;
	pthread_t thread;

	need_uffd();
	target = open_target(UFFD_FEATURE_EVENT_REMOVE);
	if (target.uffd < 0)
		ktest_skip("no events are to be had");
	assert_int_equal(pthread_create(&thread, NULL, remove_pages, target.at),
			 0);
	assert_true(uffd_waits(target.uffd));
	fill = fill_of(&target);
	fill.source_func = give_words;
	assert_int_equal(fill_and_check(&fill, &result), -EOPNOTSUPP);
	pthread_join(thread, NULL);
	close_target(&target);
}

static void what_cannot_be_is_refused(void **state)
{
	struct ktask_uffd_ctl good, fill;
	struct target target;

	need_uffd();
	target = open_target(0);
	good = fill_of(&target);
	good.source_func = give_words;
#define refused(field, value)                                            \
	do {                                                             \
		fill = good;                                             \
		fill.field = (value);                                    \
		assert_int_equal(ktask_uffd_fill(&fill, NULL), -EINVAL); \
	} while (0)
	assert_int_equal(ktask_uffd_fill(NULL, NULL), -EINVAL);
	refused(struct_size, 8);
	refused(addr, NULL);
	refused(addr, target.at + 8);
	refused(len, SIZE_MAX - 1);
	refused(fd, 0);
	refused(source_func, NULL);
	refused(offset, 5);
	refused(flags, KTASK_UFFD_STREAM);
	refused(flags, 0x80);
	refused(padding, 1);
	refused(reserved[1], 1);
#undef refused
	fill = good;
	fill.uffd = -1;
	assert_int_equal(ktask_uffd_fill(&fill, NULL), -EBADF);
	assert_int_equal(fcntl(target.uffd, F_SETFL, 0), 0);
	assert_int_equal(ktask_uffd_fill(&good, NULL), -EINVAL);
	assert_int_equal(pages_present(target.at, LEN), 0);
	close_target(&target);
}

/* Of a descriptor that is none, copying tells. */
static void other_descriptors_are_told(void **state)
{
	struct ktask_uffd_ctl fill;
	struct target target;
	int ends[2];

	need_uffd();
	target = open_target(0);
	fill = fill_of(&target);
	fill.source_func = give_words;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	fill.uffd = ends[0];
	assert_int_equal(ktask_uffd_fill(&fill, NULL), -ENOTTY);
	close(ends[0]);
	close(ends[1]);
	close_target(&target);
}

static void refused_allocations_are_done_without(void **state)
{
	need_uffd();
	for (unsigned nth = 1; nth < 8; nth++) {
		struct target target = open_target(0);
		struct ktask_uffd_ctl fill = fill_of(&target);
		int error;

		fill.source_func = give_words;
		failalloc_arm_from(nth, FAILALLOC_ALL);
		error = ktask_uffd_fill(&fill, NULL);
		failalloc_disarm();
		assert_int_equal(error, 0);
		assert_int_equal(uffd_wrong(target.at, LEN, 0), SIZE_MAX);
		close_target(&target);
	}
}

/* First those that fork: TSAN allows no threads after a fork of many. */
KTEST_MAIN(KTEST(a_process_that_dies_is_told), KTEST(another_process_is_filled),
	   KTEST(a_truncated_file_is_told), KTEST(errors_of_the_source_pass),
	   KTEST(a_peer_that_hangs_up_is_told),
	   KTEST(a_stream_that_stalls_ends),
	   KTEST(a_stream_whose_pages_cannot_be_made_is_told),
	   KTEST(memory_that_goes_is_told), KTEST(pages_outside_are_told),
	   KTEST(events_are_refused), KTEST(what_cannot_be_is_refused),
	   KTEST(other_descriptors_are_told),
	   KTEST(refused_allocations_are_done_without))
