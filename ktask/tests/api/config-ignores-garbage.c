/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lines that are not understood are passed over, the others count; a number is
 * read whole or not at all.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/config.h"

static struct tree tree;
static struct config_file file;

static int make_tree(void **state)
{
	tree_begin(&tree);
	return 0;
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

static void read_bytes(const char *bytes, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/conf", tree.root);
	tree_put_bytes(&tree, "/conf", bytes, size);
	config_read(path, geteuid(), &file);
	assert_null(file.refused);
}

static void read_text(const char *text)
{
	read_bytes(text, strlen(text));
}

static void all_keys_are_known(void **state)
{
	read_text("# the machine's limits\n"
		  "cap_percent = 60\n"
		  "  node_cap_percent=70   # of each node\n"
		  "\n"
		  "\tmax_threads\t=\t12\r\n"
		  "energy = never\n");
	assert_int_equal(file.cap_percent, 60);
	assert_int_equal(file.node_cap_percent, 70);
	assert_int_equal(file.max_threads, 12);
	assert_int_equal(file.energy, CONFIG_ENERGY_NEVER);
	assert_int_equal(file.ahead, -1);
	read_text("ahead = on\n");
	assert_int_equal(file.ahead, CONFIG_AHEAD_ON);
	read_text("ahead = small\n");
	assert_int_equal(file.ahead, CONFIG_AHEAD_SMALL);
	read_text("ahead = off\nahead = never\n");
	assert_int_equal(file.ahead, CONFIG_AHEAD_OFF);
	read_text("energy = auto\n");
	assert_int_equal(file.energy, CONFIG_ENERGY_AUTO);
	read_text("energy=always\n");
	assert_int_equal(file.energy, CONFIG_ENERGY_ALWAYS);
}

static void the_last_of_several_counts(void **state)
{
	read_text("cap_percent = 10\ncap_percent = 20\ncap_percent = x\n");
	assert_int_equal(file.cap_percent, 20);
}

static void bounds_are_kept(void **state)
{
	read_text("cap_percent = 0\nnode_cap_percent = 100\nmax_threads = 1\n");
	assert_int_equal(file.cap_percent, 0);
	assert_int_equal(file.node_cap_percent, 100);
	assert_int_equal(file.max_threads, 1);
	read_text("cap_percent=101\nnode_cap_percent=1000\nmax_threads=0\n");
	assert_int_equal(file.cap_percent, -1);
	assert_int_equal(file.node_cap_percent, -1);
	assert_int_equal(file.max_threads, -1);
	read_text("max_threads = 65536\n");
	assert_int_equal(file.max_threads, 65536);
	read_text("max_threads = 65537\n");
	assert_int_equal(file.max_threads, -1);
}

static void numbers_are_whole(void **state)
{
	static const char *const bad[] = {
		"-5",  "+5",  "5 0", "50%",   "50.5", "0x10",
		"",    "5e1", "a5",  "5a",    "5\v",  "18446744073709551666",
		"5,0", "= 5", "'5'", "\"5\"", "5;"
	};
	char line[64];

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "cap_percent = %s\n", bad[i]);
		read_text(line);
		assert_int_equal(file.cap_percent, -1);
	}
}

static void half_a_line_is_none(void **state)
{
	static const char with_nul[] = "cap_percent = 5\000"
				       "0\nmax_threads = 8\n";

	read_text("max_threads = 8\ncap_percent = 5");
	assert_int_equal(file.max_threads, 8);
	assert_int_equal(file.cap_percent, -1);
	read_bytes(with_nul, sizeof(with_nul) - 1);
	assert_int_equal(file.cap_percent, -1);
	assert_int_equal(file.max_threads, 8);
}

static void other_words_are_nothing(void **state)
{
	read_text("CAP_PERCENT = 5\ncap percent = 5\ncap_percent 5\n= 5\n=\n"
		  "cap_percentage = 5\nenergy = Never\nenergy = never ever\n"
		  "energy =\n#cap_percent = 5\n[section]\n");
	assert_int_equal(file.cap_percent, -1);
	assert_int_equal(file.energy, -1);
}

static void a_long_line_hides_no_other(void **state)
{
	static char text[20000];

	memset(text, ' ', sizeof(text));
	memcpy(text, "cap_percent = 5", 15);
	memcpy(text + 15000, "\nmax_threads = 4\n", 17);
	read_bytes(text, 15017);
	assert_int_equal(file.cap_percent, -1);
	assert_int_equal(file.max_threads, 4);
}

static void random_bytes_are_survived(void **state)
{
	static const char words[] =
		"cap_percent=max_threads = 1234567890\n#\r\t";
	uint64_t seed = ktest_seed();
	char bytes[700];

	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (round & 1) ? (char)ktest_random(&seed)
					       : words[ktest_random_below(
							 &seed, sizeof(words))];
		read_bytes(bytes, sizeof(bytes));
		assert_in_range(file.cap_percent + 1, 0, 101);
		assert_in_range(file.max_threads + 1, 0, 65537);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(all_keys_are_known), T(the_last_of_several_counts),
	   T(bounds_are_kept), T(numbers_are_whole), T(half_a_line_is_none),
	   T(other_words_are_nothing), T(a_long_line_hides_no_other),
	   T(random_bytes_are_survived))
