/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A process may name itself as it likes, with spaces, parentheses and ends of lines, even
 * so that the name looks like the fields behind it in /proc/PID/stat: these are found.  A
 * line that was cut off has no more fields than can be seen.
 */
#include "ktest.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/proc_stat.h"

/* Of 15 bytes at most, as the kernel keeps them. */
static const char *const names[] = {
	"",	    "cat", "two words", " ",
	"(",	    ")",   ") (",	"(a) (b)",
	"a) R 1 2", "\n",  "a\nb",	") D 77\n",
	"(\n) S 1", ") ",  "x)",	"1 2 3 4 5 6 7 8",
};

#define NR_NAMES (sizeof(names) / sizeof(names[0]))

static long number_at(const char *line, enum proc_stat_number number)
{
	const char *field = proc_stat_field(line, number);

	assert_non_null(field);
	return atol(field);
}

static void any_name_may_stand_before_them(void **state)
{
	char line[256];

	for (size_t i = 0; i < NR_NAMES; i++) {
		snprintf(
			line, sizeof(line),
			"4711 (%s) S 12 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
			"19 20 21 2200 23 24 25 26 27 28 29 30 31 32 33 34 35 "
			"36 37 38 390 40 41 42 43 44 45 46 47 48 49 50 51 256\n",
			names[i]);
		assert_int_equal(proc_stat_state(line), 'S');
		assert_int_equal(number_at(line, PROC_STAT_PARENT), 12);
		assert_int_equal(number_at(line, PROC_STAT_START_TICKS), 2200);
		assert_int_equal(number_at(line, PROC_STAT_CPU), 390);
		assert_int_equal(number_at(line, PROC_STAT_EXIT_CODE), 256);
	}
}

static void the_kernel_writes_them_so(void **state)
{
	char line[1024];
	ssize_t len;
	int fd;

	for (size_t i = 0; i < NR_NAMES; i++) {
		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		fd = open("/proc/thread-self/stat", O_RDONLY);
		if (fd < 0)
			ktest_skip("no /proc");
		len = read(fd, line, sizeof(line) - 1);
		close(fd);
		assert_true(len > 0);
		line[len] = '\0';
		assert_int_equal(proc_stat_state(line), 'R');
		assert_int_equal(number_at(line, PROC_STAT_PARENT), getppid());
	}
}

static void what_was_cut_off_is_not_there(void **state)
{
	assert_null(proc_stat_field("", PROC_STAT_STATE));
	assert_null(proc_stat_field("4711 (cat", PROC_STAT_STATE));
	assert_null(proc_stat_field("4711 (cat)", PROC_STAT_STATE));
	assert_null(proc_stat_field("4711 (cat) S", PROC_STAT_PARENT));
	assert_int_equal(proc_stat_state("4711 (cat)"), 0);
	assert_int_equal(proc_stat_state("4711 (cat) "), 0);
	assert_int_equal(proc_stat_state("4711 (cat) S"), 'S');
}

KTEST_MAIN(KTEST(any_name_may_stand_before_them),
	   KTEST(the_kernel_writes_them_so),
	   KTEST(what_was_cut_off_is_not_there))
