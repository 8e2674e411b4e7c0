/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a task is given reaches it whole: bytes of every size, four arguments,
 * objects that are moved, of which none is lost or there twice.
 */
#include "support/runs.h"

#include <stdlib.h>

#include "failalloc.h"

static unsigned done, wrong, alive, moves;

/* ---- bytes ---- */

struct bytes {
	unsigned char nr;
	unsigned char text[199];
};

static int check_bytes(void *arg)
{
	const struct bytes *bytes = arg;

	for (unsigned i = 0; i + 1 < bytes->nr; i++)
		if (bytes->text[i] != (unsigned char)(bytes->nr + i))
			more(wrong);
	more(done);
	return 0;
}

/* Also those that are done at once, as the queue is full of them. */
static int copy_sizes(void *arg)
{
	unsigned rounds = KTEST_TSAN || KTEST_ASAN ? 5 : 40;

	for (unsigned i = 0; i < rounds; i++)
		for (unsigned nr = 1; nr <= sizeof(struct bytes); nr++) {
			/* Nothing behind its end is read. */
			struct bytes *bytes = malloc(nr);
			int error;

			bytes->nr = (unsigned char)nr;
			for (unsigned j = 0; j + 1 < nr; j++)
				bytes->text[j] = (unsigned char)(nr + j);
			error = ktrt_spawn_copy(check_bytes, bytes, nr);
			memset(bytes, 0xff, nr);
			free(bytes);
			if (error)
				return error;
		}
	return ktrt_wait();
}

static void all_sizes(void)
{
	set(done, 0);
	assert_int_equal(copy_sizes(NULL), 0);
	assert_int_equal(ktrt_run(copy_sizes, NULL), 0);
	assert_int_equal(get(wrong), 0);
	assert_int_equal(get(done) % (2 * sizeof(struct bytes)), 0);
	assert_true(get(done) > 0);
}

static void copies_are_whole(void **state)
{
	in_each_way(all_sizes);
}

/* ---- in two steps ---- */

static int spawn_in_steps(void *arg)
{
	for (unsigned i = 0; i < 64 * 30; i++) {
		unsigned nr = i % 64 + 1;
		struct bytes *bytes = ktrt_spawn_begin(check_bytes, nr,
						       i % 5 ? 0 : KTRT_ALWAYS);

		if (!bytes || (uintptr_t)bytes % 16)
			return -EIO;
		bytes->nr = (unsigned char)nr;
		for (unsigned j = 0; j + 1 < nr; j++)
			bytes->text[j] = (unsigned char)(nr + j);
		ktrt_spawn_end(check_bytes, bytes);
	}
	if (ktrt_spawn_begin(check_bytes, 65, 0))
		return -EIO;
	return ktrt_wait();
}

static void all_steps(void)
{
	set(done, 0);
	assert_int_equal(spawn_in_steps(NULL), 0);
	assert_int_equal(ktrt_run(spawn_in_steps, NULL), 0);
	assert_int_equal(get(done), 2 * 64 * 30);
	assert_int_equal(get(wrong), 0);
}

static void bytes_are_filled_in_two_steps(void **state)
{
	assert_null(ktrt_spawn_begin(check_bytes, 1, 0));
	in_each_way(all_steps);
}

/* ---- four arguments ---- */

static int sum_up(void *a, void *b, void *c, void *d)
{
	long *sum = a;

	*sum += (long)(intptr_t)b * (long)(intptr_t)c + (long)(intptr_t)d;
	return 0;
}

static int add_one(void *a, void *b, void *c, void *d)
{
	more(*(unsigned *)a);
	if (b != &done || c != NULL || d != a)
		more(wrong);
	return 0;
}

static int make_sums(void *arg)
{
	long sum = 0, expected = 0;
	unsigned nr = 0;

	for (intptr_t i = 0; i < 500; i++) {
		const struct ktrt_dep dep = { &sum, 0, KTRT_INOUT };

		if (ktrt_spawn_args(sum_up, &sum, (void *)i, (void *)(i + 1),
				    (void *)7, &dep, 1))
			return -EIO;
		expected += (long)(i * (i + 1) + 7);
		for (int j = 0; j < 10; j++)
			if (ktrt_spawn_args(add_one, &nr, &done, NULL, &nr,
					    NULL, 0))
				return -EIO;
	}
	if (ktrt_wait() || sum != expected || get(nr) != 5000)
		return -EIO;
	return get(wrong) ? -EIO : 0;
}

static void four_each(void)
{
	assert_int_equal(make_sums(NULL), 0);
	assert_int_equal(ktrt_run(make_sums, NULL), 0);
}

static void four_arguments_need_no_struct(void **state)
{
	in_each_way(four_each);
}

/* ---- objects ---- */

/* Knows where it is, and has memory. */
struct object {
	struct object *self;
	char *owned;
	char bytes[150];
};

static void make_object(struct object *object)
{
	object->self = object;
	object->owned = strdup("5"); /* never refused */
	more(alive);
}

static void move_object(void *to, void *from)
{
	struct object *source = from, *target = to;

	if (source->self != source)
		more(wrong);
	target->self = target;
	target->owned = source->owned;
	source->self = NULL;
	more(moves);
}

static void destroy_object(struct object *object)
{
	if (object->self != object || *object->owned != '5')
		more(wrong);
	free(object->owned);
	__atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
}

static int use_object(void *arg)
{
	int code = ktrt_cancelled() ? -ECANCELED : 0;

	destroy_object(arg);
	if (!code)
		more(done);
	return code;
}

/* Large ones are not in the record. */
static int spawn_object(struct ktrt_group *group, bool large,
			const struct ktrt_dep *dep)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct object object;
	int error;

	attr.move = move_object;
	attr.arg_bytes = large ? sizeof(object) : 16;
	attr.group = group;
	attr.deps = dep;
	attr.nr_deps = !!dep;
	make_object(&object);
	error = ktrt_spawn_attr(use_object, &object, &attr);
	if (error)
		destroy_object(&object);
	return error;
}

static void objects_moved(void)
{
	struct ktrt_group *group;

	set(done, 0);
	for (int i = 0; i < 1000; i++) {
		struct ktrt_dep dep = { &alive, 0, KTRT_INOUT };

		assert_int_equal(spawn_object(NULL, i % 2, i % 3 ? &dep : NULL),
				 0);
	}
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(done), 1000);
	assert_int_equal(get(alive), 0);
	/* Those that are cancelled are destroyed all the same. */
	assert_int_equal(ktrt_group_new(&group), 0);
	ktrt_group_cancel(group);
	for (int i = 0; i < 100; i++)
		assert_int_equal(spawn_object(group, i % 2, NULL), 0);
	assert_int_equal(ktrt_group_wait(group), -ECANCELED);
	ktrt_group_free(group);
	assert_int_equal(get(done), 1000);
	assert_int_equal(get(alive), 0);
	assert_int_equal(get(wrong), 0);
}

static void objects_are_moved_and_destroyed_once(void **state)
{
	in_each_way(objects_moved);
}

/* Each in a runtime of its own, which has made no records yet. */
static void objects_come_back_where_memory_is_short(void **state)
{
	unsigned back = 0, nth = 0, failed;

	do {
		struct ktrt_dep dep = { &alive, 0, KTRT_INOUT };
		unsigned before = get(moves);
		int error;

		start_way(&all_ways[2]);
		failalloc_arm_for(++nth, FAILALLOC_MEMORY | FAILALLOC_MMAP);
		error = spawn_object(NULL, true, &dep);
		failed = failalloc_disarm();
		assert_true(error == 0 || (failed && error == -ENOMEM));
		back += error && get(moves) == before + 2;
		assert_int_equal(ktrt_stop(), 0);
		assert_int_equal(get(alive), 0);
		assert_int_equal(get(wrong), 0);
	} while (failed);
	assert_true(back > 0);
}

static void what_is_moved_has_a_size(void **state)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct object object;

	start_way(&all_ways[0]);
	attr.move = move_object;
	assert_int_equal(ktrt_spawn_attr(use_object, &object, &attr), -EINVAL);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(copies_are_whole), KTEST(bytes_are_filled_in_two_steps),
	   KTEST(four_arguments_need_no_struct),
	   KTEST(objects_are_moved_and_destroyed_once),
	   KTEST(objects_come_back_where_memory_is_short),
	   KTEST(what_is_moved_has_a_size))
