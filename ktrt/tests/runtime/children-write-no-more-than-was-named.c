/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of data that a task names weakly, or with KTRT_EARLY_RELEASE, its children may write
 * just those bytes that it names to write: not the bytes beside them that it reads.
 */
#include "support/runs.h"

static char data[16];
static unsigned ran;

static int note_run(void *arg)
{
	more(ran);
	return 0;
}

static int spawn_on(size_t first, size_t bytes, unsigned mode)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { data + first, bytes, mode };

	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(note_run, NULL, &attr);
}

/* Its task reads bytes 0 to 7, and writes 2 and 3. */
static int use_parts(void *arg)
{
	unsigned wrong = 0;

	wrong += spawn_on(2, 2, KTRT_OUT) != 0;
	wrong += spawn_on(3, 1, KTRT_INOUT) != 0;
	wrong += spawn_on(2, 0, KTRT_WEAK_OUT) != 0;
	wrong += spawn_on(0, 8, KTRT_IN) != 0;
	wrong += spawn_on(8, 1, KTRT_OUT) != 0;
	wrong += spawn_on(0, 1, KTRT_OUT) != -EINVAL;
	wrong += spawn_on(1, 2, KTRT_OUT) != -EINVAL;
	wrong += spawn_on(3, 2, KTRT_COMMUTATIVE) != -EINVAL;
	wrong += spawn_on(0, 8, KTRT_INOUT) != -EINVAL;
	wrong += spawn_on(7, 2, KTRT_WEAK_INOUT) != -EINVAL;
	return (int)wrong;
}

static void spawn_parts(const struct ktrt_dep *deps, size_t nr, unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	set(ran, 0);
	assert_int_equal(ktrt_spawn_attr(use_parts, NULL, &attr), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(ran), 5);
}

static void in_one_part(void)
{
	struct ktrt_dep deps[] = { { data, 8, KTRT_WEAK_IN },
				   { data + 2, 2, KTRT_WEAK_OUT } };

	spawn_parts(deps, 2, 0);
	deps[1].mode = KTRT_INOUT;
	spawn_parts(deps, 2, 0);
	deps[0].mode = KTRT_IN;
	spawn_parts(deps, 2, KTRT_EARLY_RELEASE);
}

/* The later part comes first. */
static void in_two_parts(void)
{
	struct ktrt_dep deps[] = { { data, 8, KTRT_WEAK_IN },
				   { data + 3, 1, KTRT_WEAK_OUT },
				   { data + 2, 1, KTRT_INOUT } };

	spawn_parts(deps, 3, 0);
	spawn_parts(deps, 3, KTRT_EARLY_RELEASE);
}

static void write_parts(void)
{
	in_one_part();
	in_two_parts();
}

static void bytes_beside_are_refused(void **state)
{
	in_each_way(write_parts);
}

KTEST_MAIN(KTEST(bytes_beside_are_refused))
