/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libktask beside the module, in a guest: populating by either engine gives the
 * same memory and the same errors, and the module is asked only where the
 * environment says so.
 *
 * A program of its own, linked statically: PID 1 runs it and passes on what it
 * prints.  Ends with 0, or with 1 and the line that is not so.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ktask/ops.h>

#define LARGE ((size_t)72 << 20) /* that parts of it are large as well */
#define PAGE 4096ul

#define CHECK(condition)                                               \
	do {                                                           \
		if (!(condition)) {                                    \
			printf("line %d: %s\n", __LINE__, #condition); \
			exit(1);                                       \
		}                                                      \
	} while (0)

static const char *const engine_names[] = { "user", "kernel" };

/* Jobs that the module has done. */
static unsigned long nr_requests(void)
{
	FILE *file = fopen("/sys/kernel/debug/ktask/stats", "r");
	unsigned long jobs = 0, alone = 0, value;
	char name[40];

	CHECK(file);
	while (fscanf(file, "%39s %lu", name, &value) == 2) {
		if (!strcmp(name, "jobs"))
			jobs = value;
		if (!strcmp(name, "jobs_alone"))
			alone = value;
	}
	fclose(file);
	return jobs + alone;
}

static char *map_buffer(int fd)
{
	char *at =
		mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
		     fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static bool all_there(char *at)
{
	static unsigned char there[LARGE / PAGE];
	size_t nr = 0;

	CHECK(!mincore(at, LARGE, there));
	for (size_t i = 0; i < LARGE / PAGE; i++)
		nr += there[i] & 1;
	return nr == LARGE / PAGE;
}

static int populate_buffer(char *at, unsigned flags,
			   struct ktask_result *result)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = at,
				      .len = LARGE,
				      .flags = flags };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	*result = (struct ktask_result)KTASK_RESULT_INIT;
	opts.result = result;
	return ktask_op_run(ktask_op_find("populate"), &args, &opts);
}

static size_t locked_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[200];

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmLck: %lu", &kib);
	if (file)
		fclose(file);
	return kib * 1024;
}

static void populate_by(const char *engine, unsigned flags, int fd)
{
	struct ktask_result result;
	unsigned long before = nr_requests();
	char *at = map_buffer(fd);

	setenv("KTASK_ENGINE", engine, 1);
	CHECK(!populate_buffer(at, flags, &result));
	CHECK(result.units == LARGE && result.threads >= 1);
	CHECK(!result.error && !result.fail_pos && result.wall_ns > 0);
	if (!(flags & KTASK_POPULATE_READ))
		CHECK(all_there(at));
	for (size_t i = 0; i < LARGE; i += PAGE)
		CHECK(at[i] == 0);
	CHECK((nr_requests() > before) == !strcmp(engine, "kernel"));
	/* For people: which is faster is the machine's affair. */
	printf("populated by %s, flags %u: %u threads, %lu MB/s\n", engine,
	       flags, result.threads,
	       (unsigned long)(LARGE * 1000ull / result.wall_ns));
	munmap(at, LARGE);
}

static void lock_by(const char *engine)
{
	unsigned long before = nr_requests();
	char *at = map_buffer(-1);

	setenv("KTASK_ENGINE", engine, 1);
	CHECK(!ktask_lock(at, LARGE, 0));
	CHECK(all_there(at) && locked_bytes() == LARGE);
	CHECK((nr_requests() > before) == !strcmp(engine, "kernel"));
	munmap(at, LARGE);
	CHECK(locked_bytes() == 0);
}

/* Memory whose page at @pos cannot be had. */
static char *broken_buffer(unsigned kind, size_t pos, int fd)
{
	char *at = map_buffer(kind == 2 ? fd : -1);

	if (kind == 0)
		munmap(at + pos, PAGE);
	else if (kind == 1)
		mprotect(at + pos, PAGE, PROT_NONE);
	else
		CHECK(!ftruncate(fd, (off_t)pos));
	return at;
}

static void fail_by_both(unsigned kind, size_t pos)
{
	struct ktask_result by[2];
	int error[2];

	for (unsigned i = 0; i < 2; i++) {
		int fd = memfd_create("test", 0);
		char *at;

		CHECK(fd >= 0 && !ftruncate(fd, (off_t)LARGE));
		at = broken_buffer(kind, pos, fd);
		setenv("KTASK_ENGINE", engine_names[i], 1);
		error[i] = populate_buffer(at, 0, &by[i]);
		CHECK(by[i].fail_pos == at + pos);
		munmap(at, LARGE);
		close(fd);
	}
	CHECK(error[0] && error[0] == error[1]);
	CHECK(by[0].error == by[1].error);
	CHECK(by[0].fail_error == by[1].fail_error);
	CHECK(by[0].fail_offset == by[1].fail_offset);
}

/* Without the setting the module is not asked. */
static void populate_by_default(void)
{
	unsigned long before = nr_requests();
	struct ktask_engine engine = KTASK_ENGINE_INIT;
	struct ktask_result result;
	char *at = map_buffer(-1);

	unsetenv("KTASK_ENGINE");
	CHECK(!populate_buffer(at, 0, &result) && all_there(at));
	CHECK(nr_requests() == before);
	CHECK(!ktask_op_engine(ktask_op_find("populate"), &engine));
	CHECK(!strcmp(engine.name, "user"));
	munmap(at, LARGE);
}

int main(void)
{
	int fd = memfd_create("test", 0);

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)LARGE));
	for (unsigned i = 0; i < 2; i++) {
		populate_by(engine_names[i], 0, -1);
		populate_by(engine_names[i], KTASK_POPULATE_READ, -1);
		populate_by(engine_names[i], 0, fd);
		lock_by(engine_names[i]);
	}
	close(fd);
	for (unsigned kind = 0; kind < 3; kind++) {
		fail_by_both(kind, 5 * PAGE);
		fail_by_both(kind, LARGE - PAGE);
	}
	populate_by_default();
	return 0;
}
