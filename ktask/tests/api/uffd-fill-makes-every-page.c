/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd fill: every page has what the source has, from a file, a stream or a function;
 * pages that are there stay; who waits for a page goes on, and first; the CPU budget
 * holds.
 */
#include "ktest.h"

#include <pthread.h>
#include <sys/socket.h>

#include "uffd.h"

#define LEN (32 * MIB)

struct target {
	int uffd;
	char *at;
};

static struct target open_target(size_t len)
{
	struct target target = { uffd_open(0), map_private(len) };

	assert_true(target.uffd >= 0);
	assert_true(uffd_register(target.uffd, target.at, len));
	return target;
}

static void close_target(struct target *target, size_t len)
{
	close(target->uffd);
	munmap(target->at, len);
}

static struct ktask_uffd_ctl fill_of(const struct target *target, size_t len)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;

	fill.uffd = target->uffd;
	fill.addr = target->at;
	fill.len = len;
	return fill;
}

static int give_words(void *buf, size_t len, uint64_t offset, void *arg)
{
	uffd_words(buf, len, offset);
	return 0;
}

static void from_a_file(size_t len, uint64_t offset)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct target target = open_target(LEN);
	struct ktask_uffd_ctl fill = fill_of(&target, len);
	size_t whole = (len + page_bytes() - 1) & ~(page_bytes() - 1);
	int fd = uffd_image(LEN + offset);

	opts.result = &result;
	fill.fd = fd;
	fill.offset = offset;
	assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	assert_int_equal(result.units, whole);
	assert_int_equal(pages_present(target.at, LEN), whole / page_bytes());
	assert_int_equal(uffd_wrong(target.at, len, offset), SIZE_MAX);
	close(fd);
	close_target(&target, LEN);
}

static void files_are_copied(void **state)
{
	need_uffd();
	from_a_file(LEN, 0);
	from_a_file(LEN, 5 * MIB + 8);
	from_a_file(1, 0);
	from_a_file(3 * MIB + 5, 4096);
	from_a_file(0, 0);
}

#define UNALIGNED (3 * MIB + 40)

/* A source of just so many bytes: what follows in the last page is zero. */
static void sources_may_end_within_a_page(void **state)
{
	static const char zeroes[65536];

	need_uffd();
	for (unsigned i = 0; i < 2; i++) {
		struct target target = open_target(LEN);
		struct ktask_uffd_ctl fill = fill_of(&target, UNALIGNED);

		fill.fd = uffd_image(UNALIGNED);
		if (i) {
			/* Of a file of this length, but in order. */
			fill.flags = KTASK_UFFD_STREAM;
			assert_int_equal(lseek(fill.fd, 0, SEEK_SET), 0);
		}
		assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
		assert_int_equal(uffd_wrong(target.at, UNALIGNED, 0), SIZE_MAX);
		assert_memory_equal(target.at + UNALIGNED, zeroes,
				    page_bytes() - UNALIGNED % page_bytes());
		assert_int_equal(pages_present(target.at, LEN),
				 UNALIGNED / page_bytes() + 1);
		close(fill.fd);
		close_target(&target, LEN);
	}
}

static void functions_are_asked(void **state)
{
	struct target target;
	struct ktask_uffd_ctl fill;

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	fill.source_func = give_words;
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	assert_int_equal(uffd_wrong(target.at, LEN, 0), SIZE_MAX);
	close_target(&target, LEN);
}

/* Small pieces, so that reads end in the middle of pages. */
static void *send_words(void *arg)
{
	static char buf[40000];
	int fd = *(int *)arg;

	for (uint64_t pos = 0; pos < LEN;) {
		size_t len = LEN - pos < sizeof(buf) ? LEN - pos : sizeof(buf);
		size_t sent = 0;

		uffd_words(buf, len, pos);
		while (sent < len) {
			ssize_t more = send(fd, buf + sent, len - sent, 0);

			if (more < 0)
				return NULL;
			sent += (size_t)more;
		}
		pos += len;
	}
	return NULL;
}

static void streams_are_read_in_order(void **state)
{
	struct target target;
	struct ktask_uffd_ctl fill;
	pthread_t sender;
	int ends[2];

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fill.fd = ends[0];
	fill.flags = KTASK_UFFD_STREAM;
	assert_int_equal(pthread_create(&sender, NULL, send_words, &ends[1]),
			 0);
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	pthread_join(sender, NULL);
	assert_int_equal(uffd_wrong(target.at, LEN, 0), SIZE_MAX);
	close(ends[0]);
	close(ends[1]);
	close_target(&target, LEN);
}

static void pages_that_are_there_stay(void **state)
{
	struct ktask_uffd_ctl fill;
	struct target target;

	need_uffd();
	target.uffd = uffd_open(0);
	target.at = map_private(LEN);
	for (size_t pos = 0; pos < LEN; pos += 7 * page_bytes())
		memset(target.at + pos, 0x55, page_bytes());
	assert_true(uffd_register(target.uffd, target.at, LEN));
	fill = fill_of(&target, LEN);
	fill.source_func = give_words;
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	for (size_t pos = 0; pos < LEN; pos += page_bytes())
		if (pos % (7 * page_bytes()))
			assert_int_equal(
				uffd_wrong(target.at + pos, page_bytes(), pos),
				SIZE_MAX);
		else
			assert_int_equal(target.at[pos + 77], 0x55);
	/* All is there: once more does nothing. */
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	assert_int_equal(target.at[77], 0x55);
	close_target(&target, LEN);
}

struct reader {
	const char *at;
	uint64_t seen;
};

static void *read_word(void *arg)
{
	struct reader *reader = arg;

	reader->seen = *(const volatile uint64_t *)reader->at;
	return NULL;
}

struct order {
	uint64_t wanted;
	unsigned calls; /* so far */
	unsigned when; /* the wanted page was asked for */
};

static int note_order(void *buf, size_t len, uint64_t offset, void *arg)
{
	struct order *order = arg;
	unsigned call = __atomic_add_fetch(&order->calls, 1, __ATOMIC_RELAXED);

	if (offset == order->wanted && len == page_bytes())
		__atomic_store_n(&order->when, call, __ATOMIC_RELAXED);
	return give_words(buf, len, offset, NULL);
}

/* One call each for the thread that sees it and for those that were faster. */
static void who_waits_comes_first(void **state)
{
	struct order order = { .wanted = LEN - 5 * page_bytes() };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill;
	struct target target;
	struct reader reader;
	pthread_t thread;

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	fill.source_func = note_order;
	fill.source_arg = &order;
	opts.max_threads = 1;
	reader.at = target.at + order.wanted + 64;
	assert_int_equal(pthread_create(&thread, NULL, read_word, &reader), 0);
	assert_true(uffd_waits(target.uffd));
	assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	pthread_join(thread, NULL);
	assert_int_equal(reader.seen, uffd_word(order.wanted + 64));
	assert_int_equal(order.when, 1);
	assert_int_equal(uffd_wrong(target.at, LEN, 0), SIZE_MAX);
	close_target(&target, LEN);
}

#define NR_READERS 4

struct random_reader {
	const char *at;
	uint64_t seed;
	unsigned wrong;
};

static void *read_randomly(void *arg)
{
	struct random_reader *reader = arg;

	for (unsigned i = 0; i < 500; i++) {
		size_t pos = ktest_random_below(&reader->seed, LEN / 8) * 8;

		reader->wrong +=
			*(const volatile uint64_t *)(reader->at + pos) !=
			uffd_word(pos);
	}
	return NULL;
}

static void many_readers_see_the_source(void **state)
{
	struct random_reader readers[NR_READERS];
	pthread_t threads[NR_READERS];
	uint64_t seed = ktest_seed();
	struct ktask_uffd_ctl fill;
	struct target target;

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	fill.source_func = give_words;
	for (unsigned i = 0; i < NR_READERS; i++) {
		readers[i].at = target.at;
		readers[i].seed = ktest_random(&seed);
		readers[i].wrong = 0;
		assert_int_equal(pthread_create(&threads[i], NULL,
						read_randomly, &readers[i]),
				 0);
	}
	assert_int_equal(ktask_uffd_fill(&fill, NULL), 0);
	for (unsigned i = 0; i < NR_READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	close_target(&target, LEN);
}

/* Whatever else runs, the call lasts as long as its CPU time allows. */
static void the_budget_holds(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill;
	struct target target;
	uint64_t passed_ns, cpu_ns;

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	fill.source_func = give_words;
	fill.cpu_percent = 10;
	opts.result = &result;
	passed_ns = ktest_now_ns();
	cpu_ns = ktest_cpu_ns();
	assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	passed_ns = ktest_now_ns() - passed_ns;
	cpu_ns = ktest_cpu_ns() - cpu_ns;
	assert_int_equal(uffd_wrong(target.at, LEN, 0), SIZE_MAX);
	/* Not counted: the last blocks, and what helpers do between chunks. */
	if (!KTEST_ASAN && !KTEST_TSAN)
		assert_true(passed_ns > cpu_ns * 3);
	close_target(&target, LEN);
}

/* Of a reader that begins in the middle. */
struct late {
	struct order order;
	struct reader reader;
	int uffd;
	pthread_t thread;
	unsigned begun; /* which call began it */
};

#define LATE_CALL 50

static int begin_reader(void *buf, size_t len, uint64_t offset, void *arg)
{
	struct late *late = arg;

	if (late->order.calls == LATE_CALL) {
		late->begun = !pthread_create(&late->thread, NULL, read_word,
					      &late->reader) &&
			      uffd_waits(late->uffd);
	}
	return note_order(buf, len, offset, &late->order);
}

/* The thread sleeps after nearly every block by then, and wakes for who waits. */
static void faults_are_served_beyond_the_budget(void **state)
{
	struct late late = { .order.wanted = LEN - 5 * page_bytes() };
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl fill;
	struct target target;

	need_uffd();
	target = open_target(LEN);
	fill = fill_of(&target, LEN);
	fill.source_func = begin_reader;
	fill.source_arg = &late;
	fill.cpu_percent = 5;
	opts.max_threads = 1;
	late.uffd = target.uffd;
	late.reader.at = target.at + late.order.wanted + 64;
	assert_int_equal(ktask_uffd_fill(&fill, &opts), 0);
	assert_true(late.begun);
	pthread_join(late.thread, NULL);
	assert_int_equal(late.reader.seen, uffd_word(late.order.wanted + 64));
	/* The call that began it, and the next. */
	assert_int_equal(late.order.when, LATE_CALL + 2);
	close_target(&target, LEN);
}

KTEST_MAIN(KTEST(files_are_copied), KTEST(sources_may_end_within_a_page),
	   KTEST(functions_are_asked), KTEST(streams_are_read_in_order),
	   KTEST(pages_that_are_there_stay), KTEST(who_waits_comes_first),
	   KTEST(many_readers_see_the_source), KTEST(the_budget_holds),
	   KTEST(faults_are_served_beyond_the_budget))
