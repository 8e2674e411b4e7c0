/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The file of the autotune cache is read as a whole or not at all: any byte that
 * changes, goes or comes makes it worth nothing, and so does a line that says
 * what cannot be, even where the sum is right.
 */
#include <inttypes.h>
#include <string.h>

#include "ktest.h"

#include "user/history/autotune.h"

#define MACHINE "Some CPU @ 2 GHz; 8 CPUs; 2 nodes; Linux 6.1; ktask 9"

static struct autotune_cache cache, again;
static char text[AUTOTUNE_BYTES + 64];

static struct autotune_entry entry_named(const char *name)
{
	struct autotune_entry entry = { .threads = 3,
					.max_threads = 8,
					.chunk_us = 500,
					.single_rate = 1234567 };

	snprintf(entry.name, sizeof(entry.name), "%s", name);
	return entry;
}

static size_t make_text(unsigned nr)
{
	cache.nr = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct autotune_entry entry;
		char name[AUTOTUNE_NAME];

		snprintf(name, sizeof(name), "op-%u", i);
		entry = entry_named(name);
		autotune_put(&cache, &entry);
	}
	return autotune_format(&cache, MACHINE, text, AUTOTUNE_BYTES);
}

static bool parse_text(size_t len)
{
	again.nr = 99;
	if (autotune_parse(text, len, MACHINE, &again))
		return true;
	assert_int_equal(again.nr, 0);
	return false;
}

static void what_is_written_is_read(void **state)
{
	for (unsigned nr = 0; nr <= AUTOTUNE_MAX; nr++) {
		size_t len = make_text(nr);

		assert_true(len > 0);
		assert_true(parse_text(len));
		assert_int_equal(again.nr, nr);
		assert_memory_equal(again.entries, cache.entries,
				    nr * sizeof(cache.entries[0]));
	}
}

static void the_largest_table_fits(void **state)
{
	struct autotune_entry entry = { .threads = AUTOTUNE_THREADS_MAX,
					.max_threads = AUTOTUNE_THREADS_MAX,
					.chunk_us = AUTOTUNE_CHUNK_US_MAX,
					.single_rate = UINT64_MAX };
	char machine[AUTOTUNE_MACHINE];

	cache.nr = 0;
	for (unsigned i = 0; i < AUTOTUNE_MAX; i++) {
		snprintf(entry.name, sizeof(entry.name), "abcdefghijkl-%02u",
			 i);
		autotune_put(&cache, &entry);
	}
	memset(machine, 'm', sizeof(machine) - 1);
	machine[sizeof(machine) - 1] = '\0';
	assert_true(autotune_format(&cache, machine, text, AUTOTUNE_BYTES) > 0);
	assert_int_equal(autotune_format(&cache, machine, text, 4000), 0);
}

static void half_a_file_is_none(void **state)
{
	size_t len = make_text(3);

	for (size_t i = 0; i < len; i++)
		assert_false(parse_text(i));
	text[len] = '\n';
	assert_false(parse_text(len + 1));
	text[len] = '\0';
	assert_false(parse_text(len + 1));
}

static void a_changed_byte_is_noticed(void **state)
{
	size_t len = make_text(3);

	for (size_t i = 0; i < len; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			text[i] ^= (char)(1 << bit);
			assert_false(parse_text(len));
			text[i] ^= (char)(1 << bit);
		}
	}
	assert_true(parse_text(len));
}

static void another_machine_s_file_is_none(void **state)
{
	size_t len = make_text(1);

	assert_false(autotune_parse(text, len, "Some CPU", &again));
	assert_false(autotune_parse(text, len, MACHINE "0", &again));
	assert_false(autotune_parse(text, len, "", &again));
}

/* Ends what is in text with a right sum; returns the length. */
static size_t end_rightly(size_t len)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return len + (size_t)snprintf(text + len, sizeof(text) - len,
				      "sum %016" PRIx64 "\n", sum);
}

#define REST " chunk_us 0 seen 2 measured 1 rate 0"
#define FOUND " chunk_us 0 seen 2 measured 0 rate 0"

static bool line_parses(const char *line)
{
	int len = snprintf(text, sizeof(text),
			   "ktask-autotune 1\nmachine " MACHINE "\n%s\n", line);

	return parse_text(end_rightly((size_t)len));
}

static void lines_say_what_can_be(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"x threads 0 of 8" REST,
		"x threads 9 of 8" REST,
		"x threads 8 of 4096" REST,
		"x threads -1 of 8" REST,
		"x threads 1 of 18446744073709551617" REST,
		"x threads 1 of 8 chunk_us 1000001 seen 1 measured 0 rate 0",
		"x threads 1 of 8 chunk_us 0 seen 0 measured 0 rate 0",
		"x threads 1 of 8 chunk_us 0 seen 4 measured 0 rate 0",
		"x threads 1 of 8 chunk_us 0 seen 1 measured 2 rate 0",
		"x threads 1 of 8 chunk_us 0 seen 1 measured 0 rate",
		"x threads 1 of 8 chunk_us 0 seen 1 measured 0 rate ",
		"x threads 1 of 8 chunk_us 0 seen 1 measured 0 rate 0 ",
		"x threads 1 of 8 chunk_us 0 seen 1 measured 0 rate 0 0",
		"x  threads 1 of 8" REST,
		"x\tthreads 1 of 8" REST,
		" threads 1 of 8" REST,
		"a/b threads 1 of 8" REST,
		"sixteen-letters- threads 1 of 8" REST,
		"x of 8 threads 1" REST,
		"x threads 1 of 8" REST "\n",
		"x threads 1 of 8" REST "\nx threads 2 of 8" REST,
	};

	assert_true(line_parses("x threads 8 of 8" REST));
	assert_true(line_parses("fifteen-letters threads 1 of 4095" REST));
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(bad); i++) {
		if (line_parses(bad[i]))
			print_message("# taken: '%s'\n", bad[i]);
		assert_false(line_parses(bad[i]));
	}
}

/* Whatever is read can be written and read again. */
static void random_text_is_survived(void **state)
{
	static const char words[] = "threads of chunk_us seen measured rate "
				    "0123456789\n sum";
	uint64_t seed = ktest_seed();

	for (int round = 0; round < 20000; round++) {
		size_t len = make_text(1 + (unsigned)round % 4);
		unsigned changes = (unsigned)ktest_random_below(&seed, 5);

		len -= 21; /* the line with the sum */
		for (unsigned i = 0; i < changes; i++)
			text[ktest_random_below(&seed, len)] =
				words[ktest_random_below(&seed, sizeof(words))];
		if (ktest_random_below(&seed, 8) == 0)
			len = ktest_random_below(&seed, len);
		if (!parse_text(end_rightly(len)))
			continue;
		cache = again;
		for (unsigned i = 0; i < cache.nr; i++)
			assert_true(autotune_entry_ok(&cache.entries[i]));
		assert_true(parse_text(autotune_format(&cache, MACHINE, text,
						       AUTOTUNE_BYTES)));
		assert_int_equal(again.nr, cache.nr);
	}
}

static bool has_entry(const char *name)
{
	for (unsigned i = 0; i < cache.nr; i++)
		if (!strcmp(cache.entries[i].name, name))
			return true;
	return false;
}

static void the_oldest_goes(void **state)
{
	struct autotune_entry entry = entry_named("new");

	make_text(AUTOTUNE_MAX);
	autotune_put(&cache, &entry);
	assert_int_equal(cache.nr, AUTOTUNE_MAX);
	assert_true(has_entry("new") && has_entry("op-1") &&
		    !has_entry("op-0"));
	entry = entry_named("op-1");
	autotune_put(&cache, &entry);
	assert_int_equal(cache.nr, AUTOTUNE_MAX);
	entry = entry_named("newer");
	autotune_put(&cache, &entry);
	assert_true(has_entry("op-1") && !has_entry("op-2"));
}

/* Of earlier versions: the rest of the file counts, and tune keeps that. */
static void what_jobs_found_is_left_out(void **state)
{
	assert_true(line_parses("x threads 1 of 8" FOUND "\n"
				"y threads 2 of 8" REST));
	assert_int_equal(again.nr, 1);
	assert_string_equal(again.entries[0].name, "y");
	assert_true(line_parses("x threads 1 of 8" FOUND));
	assert_int_equal(again.nr, 0);
}

static void names_are_plain(void **state)
{
	assert_true(autotune_name_ok("a"));
	assert_true(autotune_name_ok("Pin_pages-2.0"));
	assert_true(autotune_name_ok("fifteen-letters"));
	assert_false(autotune_name_ok("sixteen-letters-"));
	assert_false(autotune_name_ok(""));
	assert_false(autotune_name_ok(NULL));
	assert_false(autotune_name_ok("a b"));
	assert_false(autotune_name_ok("a\n"));
	assert_false(autotune_name_ok("\xc3\xa4"));
}

KTEST_MAIN(KTEST(what_is_written_is_read), KTEST(the_largest_table_fits),
	   KTEST(half_a_file_is_none), KTEST(a_changed_byte_is_noticed),
	   KTEST(another_machine_s_file_is_none), KTEST(lines_say_what_can_be),
	   KTEST(random_text_is_survived), KTEST(the_oldest_goes),
	   KTEST(what_jobs_found_is_left_out), KTEST(names_are_plain))
