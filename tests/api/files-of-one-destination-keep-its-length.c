/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy_file with several files that have one destination: it gets the length
 * that the farthest needs, whoever of them sets its own length last.
 */
#include "ktest.h"

#include <dlfcn.h>

#include "files.h"
#include "support/work.h"

/* More than one thread looks at. */
#define NR_FILES 64
/* A helper may come too late. */
#define NR_ROUNDS 4
#define SHORT_BYTES (64 * KIB)
#define LONG_BYTES (4 * MIB)
/* So long the short length waits for the long one to have been set. */
#define WAIT_US 300000

static uint32_t long_is_set;

int ftruncate(int fd, off_t len)
{
	static int (*real)(int, off_t);
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ftruncate");
	if (len == (off_t)SHORT_BYTES)
		wait_for_flag_us(&long_is_set, WAIT_US);
	rc = real(fd, len);
	if (len == (off_t)LONG_BYTES)
		set_flag(&long_is_set);
	return rc;
}

/* All hole: nothing is written that would make the destination longer. */
static char *hole(const char *name, off_t len)
{
	char *path = files_make(name, 0, 0);

	assert_int_equal(truncate(path, len), 0);
	return path;
}

static void copy_all(const char *from_short, const char *from_long)
{
	char *to = files_make("to", 0, 0);
	struct ktask_file files[NR_FILES];

	long_is_set = 0;
	for (unsigned i = 0; i < NR_FILES; i++)
		files[i] = (struct ktask_file){
			.path = i < NR_FILES / 4 ? from_short : from_long,
			.dst_path = to,
			.len = KTASK_TO_END,
		};
	assert_int_equal(files_run("copy_file", files, NR_FILES,
				   KTASK_FILE_SPARSE, NULL),
			 0);
	assert_int_equal(files_size(to), LONG_BYTES);
}

static void the_longest_decides(void **state)
{
	char *from_short = hole("short", SHORT_BYTES);
	char *from_long = hole("long", LONG_BYTES);

	need_sure_helper();
	for (int i = 0; i < NR_ROUNDS; i++)
		copy_all(from_short, from_long);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_longest_decides,
						files_begin, files_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
