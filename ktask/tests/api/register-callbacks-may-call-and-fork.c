/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register: the functions of the device may call the library, register other
 * memory, and fork.  A child has nothing registered: it takes nothing back, and can
 * use the library.
 */
#include "ktest.h"

#include <sys/wait.h>

#include "device.h"
#include "threads.h"

/* Four windows of pages that are made ahead: the third call of a device is beside a job
 * that makes the second one. */
#define LEN (128 * MIB)
#define INNER (4 * MIB)
#define UNIT (4 * MIB)

static const unsigned orders[] = { 0, KTASK_REGISTER_PARALLEL };

static struct ktask_register_ctl unit_ctl(struct device *device, unsigned order)
{
	struct ktask_register_ctl ctl;

	device_init(device);
	device->any_order = order;
	ctl = device_ctl(device, order);
	ctl.unit_bytes = UNIT;
	ctl.max_piece_bytes = UNIT;
	return ctl;
}

/* Accepts whatever there is: the inner device. */
static int accept_piece(void *start, void *end, void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

static int release_piece(void *start, void *end, void *arg)
{
	__atomic_sub_fetch((int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

static int use_the_library(struct device *device, char *start, char *end)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_registration *registration;
	char *at = mmap(NULL, INNER, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int count = 0, error;

	if (at == MAP_FAILED)
		return -ENOMEM;
	ctl.register_func = accept_piece;
	ctl.unregister_func = release_piece;
	ctl.func_arg = &count;
	error = ktask_fill(at, INNER, NULL, 0, 0);
	if (!error)
		error = ktask_register(&registration, at, INNER, &ctl, NULL);
	if (!error)
		error = ktask_unregister(&registration, NULL);
	if (!error)
		error = ktask_discard(at, INNER, 0);
	munmap(at, INNER);
	return error ? error : count;
}

static void callbacks_may_call_the_library(void **state)
{
	static struct device device;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		device.before = use_the_library;
		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, NULL), 0);
		assert_int_equal(device_bytes(&device), LEN);
		assert_int_equal(ktask_unregister(&registration, NULL), 0);
		assert_int_equal(device.wrong, 0);
		munmap(at, LEN);
	}
}

struct forks {
	pid_t parent;
	pid_t child; /* of the third call */
};

static int fork_in_third(struct device *device, char *start, char *end)
{
	struct forks *forks = device->arg;

	if (device->calls == 3 && getpid() == forks->parent) {
		threads_let_begin();
		forks->child = fork();
	}
	return 0;
}

/* What the child's call returned, and what it did there. */
static int check_in_child(const struct device *device, unsigned calls,
			  int error)
{
	char *at;

	if (error != -ECANCELED || device->calls != calls || device->takes)
		return 1;
	at = mmap(NULL, INNER, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return ktask_populate(at, INNER, 0) ? 2 : 0;
}

static int fork_while_registering(void *arg)
{
	static struct device device;
	struct ktask_register_ctl ctl = unit_ctl(&device, 0);
	struct ktask_registration *registration;
	char *at = map_private(LEN);
	struct forks forks = { .parent = getpid() };
	int error;

	device.before = fork_in_third;
	device.arg = &forks;
	error = ktask_register(&registration, at, LEN, &ctl, NULL);
	if (getpid() != forks.parent)
		_exit(check_in_child(&device, 3, error));
	ktest_check(!error);
	ktest_check(!ktest_wait_for(forks.child, 60));
	ktest_check(device_bytes(&device) == LEN);
	ktest_check(!ktask_unregister(&registration, NULL));
	ktest_check(!device.nr && !device.wrong);
	return 0;
}

static void a_callback_may_fork(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("the sanitizer allows no forks beside threads");
	assert_int_equal(ktest_in_child(fork_while_registering, NULL), 0);
}

static int unregister_there(void *arg)
{
	struct ktask_registration **registration = arg;

	ktest_check(!ktask_unregister(registration, NULL));
	ktest_check(!*registration);
	return 0;
}

static void a_child_forgets_and_the_parent_keeps(void **state)
{
	static struct device device;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(orders); i++) {
		struct ktask_register_ctl ctl = unit_ctl(&device, orders[i]);
		struct ktask_registration *registration;
		char *at = map_private(LEN);

		assert_int_equal(
			ktask_register(&registration, at, LEN, &ctl, NULL), 0);
		threads_let_begin();
		assert_int_equal(
			ktest_in_child(unregister_there, &registration), 0);
		assert_int_equal(device_bytes(&device), LEN);
		assert_int_equal(ktask_unregister(&registration, NULL), 0);
		assert_int_equal(device.nr, 0);
		munmap(at, LEN);
	}
}

KTEST_MAIN(KTEST(a_callback_may_fork),
	   KTEST(a_child_forgets_and_the_parent_keeps),
	   KTEST(callbacks_may_call_the_library))
