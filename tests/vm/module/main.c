// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tests as files in debugfs: PID 1 reads ktask_test/tests, writes a name
 * to ktask_test/run, which runs it in the writer's context and returns its
 * errno, and reads ktask_test/why.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "test.h"

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the random tests");

static struct rnd_state rnd;
static char why[256];
static struct dentry *dir;

static const struct test *const tables[] = {
	job_tests,	 error_tests,	numa_tests,
	prio_tests,	 start_tests,	overload_tests,
	user_half_tests, inherit_tests, planted_tests,
};

u32 test_random(u32 below)
{
	return prandom_u32_state(&rnd) % below;
}

int test_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vscnprintf(why, sizeof(why), format, args);
	va_end(args);
	return -EPROTO;
}

int test_skip(const char *reason)
{
	strscpy(why, reason, sizeof(why));
	return -EOPNOTSUPP;
}

static const struct test *find_test(const char *name)
{
	const struct test *test;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (test = tables[i]; test->name; test++)
			if (!strcmp(test->name, name))
				return test;
	return NULL;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t len,
			 loff_t *pos)
{
	const struct test *test;
	char name[80] = "";
	int error;

	if (len >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, from, len))
		return -EFAULT;
	test = find_test(strim(name));
	if (!test)
		return -ENOENT;
	why[0] = 0;
	error = test->func();
	return error ? error : len;
}

static const struct file_operations run_ops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
};

static int tests_show(struct seq_file *m, void *unused)
{
	const struct test *test;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (test = tables[i]; test->name; test++)
			seq_printf(m, "%s\n", test->name);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tests);

static int why_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%s\n", why);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(why);

static int __init test_init(void)
{
	prandom_seed_state(&rnd, seed);
	dir = debugfs_create_dir("ktask_test", NULL);
	debugfs_create_file("tests", 0400, dir, NULL, &tests_fops);
	debugfs_create_file("run", 0200, dir, NULL, &run_ops);
	debugfs_create_file("why", 0400, dir, NULL, &why_fops);
	return 0;
}

static void __exit test_exit(void)
{
	debugfs_remove(dir);
}

module_init(test_init);
module_exit(test_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("tests of ktask inside the kernel");
