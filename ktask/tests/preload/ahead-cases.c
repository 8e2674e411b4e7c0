/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Programs that touch large memory in order, or not, and look at what is present
 * besides.  Each checks its own contents and ends with "ok", or tells what it found.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "ahead_cases.h"
#include "util/sched_attr.h"

/* Of the mapping what may be made before anything is known, and 3 %. */
#define FIRST_PAGES(len) ((len) / PAGE_BYTES / 16 + 512)

static void touch_upwards(const char *how)
{
	char *base = allocate_pages(how);
	size_t at;

	must_hold(nr_threads() > 1, "it is not watched");
	at = touch_until_helped(base, LEN);
	must_hold(at, "nothing was made ahead");
	fill_pages(base, at, LEN);
	check_pages(base, 0, LEN);
}

/* From the end on. */
static void touch_downwards(const char *how)
{
	char *base = allocate_pages(how);
	bool seen = false;
	long waited = 0;

	for (size_t end = LEN; end && !seen; end -= BLOCK) {
		for (size_t at = end; at > end - BLOCK; at -= PAGE_BYTES)
			base[at - PAGE_BYTES] = 1;
		for (int i = 0; i < 200 && !seen && waited < WAIT_MS; i++) {
			seen = end > BLOCK &&
			       count_present(base, end - BLOCK) > 0;
			sleep_ms(seen ? 0 : 5);
			waited += 5;
		}
	}
	must_hold(seen, "nothing was made ahead");
}

/* How much more is present than was touched, once it stops. */
static void stop_halfway(const char *how)
{
	char *base = allocate_pages(how);
	size_t at = touch_until_helped(base, LEN), half = LEN / 2, extra;

	must_hold(at, "nothing was made ahead");
	for (; at < half; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(1);
	}
	sleep_ms(500);
	extra = count_present(base + at, LEN - at);
	if (extra > FIRST_PAGES(LEN) + at / PAGE_BYTES * 3 / 100)
		printf("%zu pages too many\n", extra);
	check_pages(base, 0, at);
}

/* Dense at first, and then a page in each 2 MiB: huge pages would be 512 times what it
 * stores to.  @how: "waits" for what is made ahead. */
static void thins_out(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t dense = LEN / 4, stored = dense / PAGE_BYTES, there, bound;
	size_t helped = 0;

	if (!strcmp(how, "waits")) {
		helped = touch_until_helped(base, dense);
		must_hold(helped, "nothing was made ahead");
	}
	for (size_t at = helped; at < dense; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(5);
	}
	for (size_t at = dense; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + PAGE_BYTES);
		stored++;
		sleep_ms(5);
	}
	sleep_ms(200);
	there = count_present(base, LEN);
	bound = FIRST_PAGES(LEN) + stored * 3 / 100;
	if (there > stored + bound)
		printf("%zu pages stored to, %zu present\n", stored, there);
	check_pages(base, 0, dense);
}

/* ---- several threads in one mapping ---- */

struct part {
	char *base;
	size_t len, touched;
	bool helped;
	pthread_t thread;
};

/* Half of it, or more until something is made ahead. */
static void *touch_part(void *arg)
{
	struct part *part = arg;
	size_t at = touch_until_helped(part->base, part->len);

	part->helped = at;
	for (at = at ? at : part->len; at < part->len / 2; at += BLOCK) {
		fill_pages(part->base, at, at + BLOCK);
		sleep_ms(4);
	}
	part->touched = at;
	return NULL;
}

/* Each in a part of its own; they share one bound. */
static void touch_by_threads(const char *how)
{
	size_t nr = strtoul(how, NULL, 10), touched = 0, there, bound;
	char *base = allocate_pages("mmap");
	struct part parts[8];

	for (size_t i = 0; i < nr; i++) {
		parts[i].base = base + LEN / nr * i;
		parts[i].len = LEN / nr;
		must_hold(!pthread_create(&parts[i].thread, NULL, touch_part,
					  &parts[i]),
			  "pthread_create");
	}
	for (size_t i = 0; i < nr; i++)
		pthread_join(parts[i].thread, NULL);
	sleep_ms(300);
	for (size_t i = 0; i < nr; i++) {
		must_hold(parts[i].helped, "nothing was made ahead");
		check_pages(parts[i].base, 0, parts[i].touched);
		touched += parts[i].touched / PAGE_BYTES;
	}
	there = count_present(base, LEN);
	bound = FIRST_PAGES(LEN) + touched * 3 / 100;
	if (there > touched + bound)
		printf("%zu pages touched, %zu present\n", touched, there);
}

/* A page here and there, every fourth, or the first ones: nothing else is present, at least
 * where nothing is made ahead. */
static void touch_scattered(const char *how)
{
	char *base = allocate_pages("malloc");
	size_t nr = LEN / PAGE_BYTES, touched = 0;
	uint64_t random = 88172645463325252u;

	for (size_t i = 0; i < nr / 4; i++) {
		size_t page = i * (strcmp(how, "order") ? 4 : 1);

		if (!strcmp(how, "random")) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			page = random % nr;
		}
		if (!strcmp(how, "twos"))
			page -= i % 2 * 3;
		touched += !base[page * PAGE_BYTES];
		base[page * PAGE_BYTES] = 1;
		if (i % 512 == 511)
			sleep_ms(1);
	}
	sleep_ms(200);
	if (count_present(base, LEN) != touched)
		printf("%zu pages touched, %zu present\n", touched,
		       count_present(base, LEN));
}

static bool is_page_there(const char *page)
{
	unsigned char there = 0;

	must_hold(!mincore((void *)page, PAGE_BYTES, &there), "mincore");
	return there & 1;
}

/* One of so many pages, downwards if it is negative, to the middle: nothing else is present
 * but some of those to come. */
static void walk_in_steps(const char *how)
{
	char *base = allocate_pages("mmap");
	long step = strtol(how, NULL, 10), nr = (long)(LEN / PAGE_BYTES);
	long first = step < 0 ? nr - 1 : 0, waited = 0, ahead = 0, i;
	long count = nr / labs(step);

	for (i = 0; i < count / 2; i++) {
		base[(first + i * step) * (long)PAGE_BYTES] = 1;
		/* Until the next one but some is there already. */
		while (i % 256 == 255 && !ahead && waited < WAIT_MS &&
		       waited < i * 20) {
			for (long k = 1; k < 200; k++)
				ahead += is_page_there(
					base + (first + (i + k) * step) *
						       (long)PAGE_BYTES);
			sleep_ms(5);
			waited += 5;
		}
		if (i % 256 == 0)
			sleep_ms(2);
	}
	must_hold(ahead, "nothing was made ahead");
	sleep_ms(300);
	for (ahead = 0, waited = 0; i < count; i++)
		ahead += is_page_there(base +
				       (first + i * step) * (long)PAGE_BYTES);
	if ((size_t)ahead > FIRST_PAGES(LEN) + (size_t)count / 2 * 3 / 100)
		printf("%ld pages too many\n", ahead);
	for (long page = 0; page < nr; page++)
		if ((page - first) % step &&
		    is_page_there(base + page * (long)PAGE_BYTES))
			waited++;
	if (waited)
		printf("%ld pages between\n", waited);
}

/* As sched_getattr(2) tells it. */
static uint64_t slice_of(pid_t thread)
{
	struct sched_attr_v0 attr = { 0 };

	must_hold(!syscall(SYS_sched_getattr, thread, &attr, sizeof(attr), 0),
		  "sched_getattr");
	return attr.runtime;
}

/* With it helpers get another priority, and so another slice. */
static void drop_right_to_raise(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct rights[2];

	must_hold(!syscall(SYS_capget, &header, rights), "capget");
	rights[0].effective &= ~(1u << CAP_SYS_NICE);
	rights[0].permitted &= ~(1u << CAP_SYS_NICE);
	must_hold(!syscall(SYS_capset, &header, rights), "capset");
}

#define SHORT_SLICE_NS 100000 /* the watcher's; it makes the helpers */

static void ordinary_slices(const char *how)
{
	uint64_t own = slice_of(0);
	long helper;
	char *base;

	drop_right_to_raise();
	base = allocate_pages("malloc");
	must_hold(touch_until_helped(base, LEN), "nothing was made ahead");
	helper = status_value("ktask", "Pid:");
	/* They end when they idle. */
	must_hold(helper > 0, "nothing was made ahead: the helpers have left");
	must_hold(slice_of((pid_t)helper) == own ||
			  slice_of((pid_t)helper) > SHORT_SLICE_NS,
		  "slices of a helper are short");
}

/* With a limit that a stack would count against. */
static void print_threads(const char *how)
{
	char *base = allocate_pages("malloc");

	fill_pages(base, 0, LEN);
	/* One that begins only to end needs a CPU for that. */
	for (int i = 0; i < WAIT_MS / 5 && nr_threads() > 1; i++)
		sleep_ms(5);
	printf("%u threads\n", nr_threads());
}

static void write_number(const char *group, const char *name, long number)
{
	char path[300], text[32];
	int fd, len = snprintf(text, sizeof(text), "%ld\n", number);

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	must_hold(fd >= 0 && write(fd, text, (size_t)len) == len, path);
	close(fd);
}

static void *wait_for_byte(void *fd)
{
	char byte;

	must_hold(read(*(int *)fd, &byte, 1) == 0, "read");
	return NULL;
}

#define LAST_THREADS 3

/* In a control group that has this thread and those: they are the program's. */
static void last_threads(const char *group)
{
	pthread_t made[LAST_THREADS];
	int ends[2];
	char *base;

	write_number(group, "cgroup.procs", getpid());
	write_number(group, "pids.max", 1 + LAST_THREADS);
	base = allocate_pages("malloc");
	for (size_t at = 0; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(1);
	}
	must_hold(!pipe(ends), "pipe");
	for (int i = 0; i < LAST_THREADS; i++)
		must_hold(!pthread_create(&made[i], NULL, wait_for_byte,
					  &ends[0]),
			  "pthread_create");
	close(ends[1]);
	for (int i = 0; i < LAST_THREADS; i++)
		pthread_join(made[i], NULL);
	check_pages(base, 0, LEN);
}

/* As many MiB as are told. */
static void fill_megabytes(const char *how)
{
	size_t len = strtoul(how, NULL, 10) * MIB;
	char *block = malloc(len);

	must_hold(block != NULL, "malloc");
	for (size_t at = 0; at < len; at += PAGE_BYTES)
		block[at] = 1;
}

/* The kernel's account of mappings. */
struct account {
	FILE *file;
	uintptr_t start, end;
	char line[512];
};

/* The next line on mappings of LEN bytes that begins with @name, such as "Rss:". */
static bool next_line(struct account *account, const char *base,
		      const char *name)
{
	uintptr_t from, to;

	while (fgets(account->line, sizeof(account->line), account->file)) {
		if (sscanf(account->line, "%lx-%lx ", &from, &to) == 2) {
			account->start = from;
			account->end = to;
		} else if (account->start < (uintptr_t)base + LEN &&
			   account->end > (uintptr_t)base &&
			   !strncmp(account->line, name, strlen(name))) {
			return true;
		}
	}
	return false;
}

static size_t sum_kib(const char *base, const char *name)
{
	struct account account = { fopen("/proc/self/smaps", "r"), 0, 0, "" };
	size_t kib = 0;

	must_hold(account.file != NULL, "smaps");
	while (next_line(&account, base, name))
		kib += account_value(account.line);
	fclose(account.file);
	return kib;
}

static bool is_advised(const char *base)
{
	struct account account = { fopen("/proc/self/smaps", "r"), 0, 0, "" };
	bool found = false;

	must_hold(account.file != NULL, "smaps");
	while (!found && next_line(&account, base, "VmFlags:"))
		found = strstr(account.line, " hg");
	fclose(account.file);
	return found;
}

/* Nobody advises what the program did not ask for. */
static void small_unadvised(const char *how)
{
	char *base = allocate_pages("mmap");

	for (size_t at = 0; at < LEN; at += BLOCK) {
		fill_pages(base, at, at + BLOCK);
		sleep_ms(2);
		must_hold(!is_advised(base), "huge pages were advised");
	}
	check_pages(base, 0, LEN);
}

static atomic_uint nr_spinning;

static void *spin_for_ever(void *unused)
{
	atomic_fetch_add(&nr_spinning, 1);
	for (;;)
		;
	return NULL;
}

/* Threads of the program keep all CPUs busy: no helper could get one. */
static void fills_cpus(const char *how)
{
	unsigned nr = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	char *base = allocate_pages("malloc");
	long waited = 0, sleeps = 0;
	bool seen = false;
	pthread_t thread;

	for (unsigned i = 0; i < nr; i++)
		must_hold(!pthread_create(&thread, NULL, spin_for_ever, NULL),
			  "pthread_create");
	while (atomic_load(&nr_spinning) < nr)
		sleep_ms(1);
	for (size_t at = 0; at < LEN && !seen; at += BLOCK) {
		/* Nothing is advised before so much was touched. */
		if (at == 4 * BLOCK)
			sleeps = watcher_sleeps();
		fill_pages(base, at, at + BLOCK);
		for (int i = 0; i < 40 && !seen && waited < WAIT_MS; i++) {
			seen = is_advised(base);
			sleep_ms(seen ? 0 : 5);
			waited += 5;
		}
	}
	must_hold(seen || watcher_sleeps() - sleeps < 100,
		  "no huge pages were advised");
	must_hold(seen, "nothing was made ahead: the watcher got no CPU");
	check_pages(base, 0, BLOCK);
}

/* What the program says of the size of its pages. */
static void small_pages(const char *how)
{
	char *base = allocate_block("mmap", LEN);

	must_hold(!madvise(base, LEN, MADV_NOHUGEPAGE), "madvise");
	fill_pages(base, touch_until_helped(base, LEN), LEN);
	check_pages(base, 0, LEN);
	must_hold(!sum_kib(base, "AnonHugePages:"),
		  "huge pages against advice");
}

/* The kernel's page of zeros is in no account: what is there was made in vain. */
static void read_only(const char *how)
{
	const char *base = allocate_pages("mmap");
	size_t wasted;

	for (size_t at = 0; at < LEN; at += PAGE_BYTES) {
		must_hold(!*(const volatile char *)(base + at), "contents");
		if (!(at % BLOCK))
			sleep_ms(5);
	}
	wasted = sum_kib(base, "Anonymous:") * 1024 / PAGE_BYTES;
	if (wasted > FIRST_PAGES(LEN) + LEN / PAGE_BYTES * 3 / 100)
		printf("%zu pages made\n", wasted);
}

static const struct ahead_case all_cases[] = {
	{ "helped", touch_upwards },
	{ "downwards", touch_downwards },
	{ "wastes", stop_halfway },
	{ "thins-out", thins_out },
	{ "parts", touch_by_threads },
	{ "scattered", touch_scattered },
	{ "walks", walk_in_steps },
	{ "reads", read_only },
	{ "fills", fill_megabytes },
	{ "threads", print_threads },
	{ "last-threads", last_threads },
	{ "small-pages", small_pages },
	{ "small-unadvised", small_unadvised },
	{ "fills-cpus", fills_cpus },
	{ "slices", ordinary_slices },
};

int main(int argc, char **argv)
{
	return run_case(all_cases, sizeof(all_cases) / sizeof(all_cases[0]),
			argc, argv);
}
