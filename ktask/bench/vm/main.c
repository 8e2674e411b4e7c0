// SPDX-License-Identifier: GPL-2.0-only
/*
 * The measurements, one file of debugfs each: reading it measures and says one
 * line, "NAME: VALUE UNIT ...".  Both sides of a ratio take turns, and the median
 * of each is used.
 *
 * Behaves badly if the machine under the guest does something else meanwhile.
 */
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

#include "bench.h"
#include "kernel/ktask_kernel.h"

#define ROUNDS 11
#define UNITS 32768 /* 128 MiB */
#define MIN_CHUNK 32
#define EMPTY_ROUNDS 2001
#define LOAD_NS (200 * NSEC_PER_MSEC)
#define LOAD_ROUNDS 21

static struct dentry *dir;

static int compare_times(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 find_median(u64 *values, unsigned int nr)
{
	sort(values, nr, sizeof(*values), compare_times, NULL);
	return values[nr / 2];
}

/* "1.85" of @a over @b. */
static void show_ratio(struct seq_file *m, const char *name, u64 a, u64 b)
{
	u64 percent = b ? div64_u64(a * 100, b) : 0;

	seq_printf(m, "%s: %llu.%02llu (%llu us against %llu us)\n", name,
		   percent / 100, percent % 100, a / 1000, b / 1000);
}

/* ---- jobs over pages ---- */

/* How one side does the job. */
struct side {
	enum { KTASK, PADATA, HALVES } how;
	unsigned int threads;
};

/* How often a helper was lent the caller's priority, in all. */
static unsigned long nr_lent;

static int run_ranges(struct memory *memory, const struct ktask_ctl *ctl)
{
	struct ktask_node nodes[MAX_NUMNODES > 8 ? 8 : MAX_NUMNODES];
	unsigned long each = memory->nr / memory->nr_nodes;
	unsigned int i;

	if (memory->nr_nodes > ARRAY_SIZE(nodes))
		return -E2BIG;
	for (i = 0; i < memory->nr_nodes; i++) {
		nodes[i].start = (void *)(i * each);
		nodes[i].task_size = each;
		nodes[i].nid = page_to_nid(memory->pages[i * each]);
	}
	return ktask_run_numa(nodes, memory->nr_nodes, ctl);
}

struct half {
	struct work_struct work;
	struct memory *memory;
	unsigned long start, end;
};

static void clear_half(struct work_struct *work)
{
	struct half *half = container_of(work, struct half, work);

	memory_clear((void *)half->start, (void *)half->end, half->memory);
}

/* The half of this CPU's node, where there are two, here; the other on another
 * CPU, which has nothing else to do: two threads and nothing else. */
static int run_halves(struct memory *memory)
{
	unsigned long middle = memory->nr / 2;
	struct half half = { .memory = memory,
			     .start = middle,
			     .end = memory->nr };
	unsigned long start = 0, end = middle;
	int cpu;

	INIT_WORK_ONSTACK(&half.work, clear_half);
	migrate_disable();
	if (page_to_nid(memory->pages[0]) != numa_node_id()) {
		swap(half.start, start);
		swap(half.end, end);
	}
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu < nr_cpu_ids)
		queue_work_on(cpu, system_highpri_wq, &half.work);
	memory_clear((void *)start, (void *)end, memory);
	migrate_enable();
	if (cpu < nr_cpu_ids)
		flush_work(&half.work);
	destroy_work_on_stack(&half.work);
	return cpu < nr_cpu_ids ? 0 : -EOPNOTSUPP;
}

static u64 run_side(struct memory *memory, const struct side *side, int *error)
{
	u64 start_ns = ktime_get_ns();

	if (side->how == PADATA) {
		*error = padata_run(memory->nr, MIN_CHUNK, side->threads,
				    memory_clear, memory);
	} else if (side->how == HALVES) {
		*error = run_halves(memory);
	} else {
		DEFINE_KTASK_CTL(ctl, memory_clear, memory, MIN_CHUNK);
		struct ktask_result result = {};

		ktask_ctl_set_max_threads(&ctl, side->threads);
		ktask_ctl_set_result(&ctl, &result);
		*error = run_ranges(memory, &ctl);
		nr_lent += result.helpers_lent;
	}
	return ktime_get_ns() - start_ns;
}

static u64 run_counted(struct memory *memory, const struct side *side,
		       unsigned long *far, unsigned long *share, int *error)
{
	u64 ns;

	if (*error)
		return 0;
	memory_reset(memory);
	ns = run_side(memory, side, error);
	*far += atomic_long_read(&memory->remote);
	*share += memory_share(memory);
	return ns;
}

/* How much longer @a takes than @b. */
static int show_sides(struct seq_file *m, const char *name, enum cost cost,
		      struct side a, struct side b)
{
	struct memory memory = { .cost = cost };
	u64 a_ns[ROUNDS], b_ns[ROUNDS];
	unsigned long far[2] = {}, share[2] = {};
	int i, error = memory_alloc(&memory, UNITS);

	for (i = 0; i < ROUNDS && !error; i++) {
		a_ns[i] = run_counted(&memory, &a, &far[0], &share[0], &error);
		b_ns[i] = run_counted(&memory, &b, &far[1], &share[1], &error);
	}
	if (!error) {
		show_ratio(m, name, find_median(a_ns, ROUNDS),
			   find_median(b_ns, ROUNDS));
		seq_printf(m,
			   "%s, units of another node: %lu and %lu of %lu, the "
			   "latter by CPUs unequally fast %lu\n",
			   name, far[0], far[1], memory.nr * ROUNDS, share[1]);
	}
	memory_free(&memory);
	return error;
}

static const struct side one = { KTASK, 1 }, all = { KTASK, 0 },
			 halves = { HALVES, 2 };

static struct side make_padata_side(void)
{
	return (struct side){ PADATA, num_online_cpus() };
}

/* What this machine's second CPU is worth at most. */
static int ceiling_show(struct seq_file *m, void *unused)
{
	return show_sides(m, "clear, one thread against two with a half each",
			  COST_UNIFORM, one, halves);
}
DEFINE_SHOW_ATTRIBUTE(ceiling);

static int clear_show(struct seq_file *m, void *unused)
{
	return show_sides(m, "clear, one thread against all", COST_UNIFORM, one,
			  all);
}
DEFINE_SHOW_ATTRIBUTE(clear);

static int uniform_show(struct seq_file *m, void *unused)
{
	return show_sides(m, "uniform work, padata against ktask", COST_UNIFORM,
			  make_padata_side(), all);
}
DEFINE_SHOW_ATTRIBUTE(uniform);

static int skewed_show(struct seq_file *m, void *unused)
{
	return show_sides(m, "skewed work, padata against ktask", COST_SKEWED,
			  make_padata_side(), all);
}
DEFINE_SHOW_ATTRIBUTE(skewed);

static int remote_show(struct seq_file *m, void *unused)
{
	return show_sides(m, "slow memory elsewhere, padata against ktask",
			  COST_REMOTE, make_padata_side(), all);
}
DEFINE_SHOW_ATTRIBUTE(remote);

/* ---- an empty job ---- */

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static void no_work(struct work_struct *work)
{
}

/* Where the kernel likes, which may be the caller's own CPU; or on another. */
static void queue_empty(struct work_struct *work, bool elsewhere)
{
	int cpu = WORK_CPU_UNBOUND;

	if (elsewhere)
		cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	queue_work_on(cpu, elsewhere ? system_wq : system_unbound_wq, work);
	flush_work(work);
}

static int show_empty(struct seq_file *m, const char *name, bool elsewhere)
{
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 1);
	u64 *ns = kcalloc(2 * EMPTY_ROUNDS, sizeof(*ns), GFP_KERNEL);
	struct work_struct work;
	int i;

	if (!ns)
		return -ENOMEM;
	INIT_WORK_ONSTACK(&work, no_work);
	ktask_ctl_set_max_threads(&ctl, 2);
	for (i = 0; i < EMPTY_ROUNDS; i++) {
		u64 start_ns = ktime_get_ns(), middle_ns;

		ktask_run(NULL, 2, &ctl);
		middle_ns = ktime_get_ns();
		queue_empty(&work, elsewhere);
		ns[i] = middle_ns - start_ns;
		ns[EMPTY_ROUNDS + i] = ktime_get_ns() - middle_ns;
	}
	destroy_work_on_stack(&work);
	show_ratio(m, name, find_median(ns, EMPTY_ROUNDS),
		   find_median(ns + EMPTY_ROUNDS, EMPTY_ROUNDS));
	kfree(ns);
	return 0;
}

static int empty_show(struct seq_file *m, void *unused)
{
	int error = show_empty(
		m, "empty job, ktask against queue_work and flush_work", false);

	return error ? error
		     : show_empty(m, "the same, queued on another CPU", true);
}
DEFINE_SHOW_ATTRIBUTE(empty);

/* ---- a neighbour ---- */

static u64 load_done;

/* Nice 0, on a CPU that is not the caller's. */
static int load_main(void *arg)
{
	while (!kthread_should_stop()) {
		int i;

		/* Not cpu_relax(), for which an emulator may do anything. */
		for (i = 0; i < 1000; i++)
			barrier();
		WRITE_ONCE(load_done, load_done + 1);
		cond_resched();
	}
	return 0;
}

/* CPU time of kernel threads with such a name, as of the last tick. */
static u64 cpu_ns_of(const char *name)
{
	struct task_struct *task;
	u64 ns = 0;

	rcu_read_lock();
	for_each_process(task) if ((task->flags & PF_KTHREAD) &&
				   !strncmp(task->comm, name, strlen(name)))
		ns += READ_ONCE(task->se.sum_exec_runtime);
	rcu_read_unlock();
	return ns;
}

/* Sums of all rounds beside jobs of a kind. */
struct beside {
	u64 ns, load_ns, helpers_ns;
	unsigned long jobs, lent;
};

/* What the load gets done in a second, beside jobs of that kind. */
static u64 load_beside(struct memory *memory, const struct side *side,
		       struct beside *sum, int *error)
{
	u64 load_ns = cpu_ns_of("load"), helpers_ns = cpu_ns_of("ktask/");
	u64 start_ns = ktime_get_ns(), until = start_ns + LOAD_NS, ns;
	u64 before = READ_ONCE(load_done);
	unsigned long lent = nr_lent;

	for (; !*error && ktime_get_ns() < until; sum->jobs++)
		run_side(memory, side, error);
	ns = ktime_get_ns() - start_ns;
	sum->ns += ns;
	sum->load_ns += cpu_ns_of("load") - load_ns;
	sum->helpers_ns += cpu_ns_of("ktask/") - helpers_ns;
	sum->lent += nr_lent - lent;
	return div64_u64((READ_ONCE(load_done) - before) * NSEC_PER_SEC, ns);
}

static void show_part(struct seq_file *m, const char *name, u64 part, u64 whole)
{
	u64 mille = whole ? div64_u64(part * 1000, whole) : 0;

	seq_printf(m, "%s, part of what it did: %llu.%llu %%\n", name,
		   mille / 10, mille % 10);
}

/* Who had the CPU of the load, in thousandths. */
static void show_sums(struct seq_file *m, const char *name,
		      const struct beside *sum)
{
	u64 load = div64_u64(sum->load_ns * 1000, sum->ns);
	u64 helpers = div64_u64(sum->helpers_ns * 1000, sum->ns);

	seq_printf(m,
		   "%s: CPU time of the load %llu.%llu %%, of helpers "
		   "%llu.%llu %%; lent %lu times in %lu jobs of %llu us\n",
		   name, load / 10, load % 10, helpers / 10, helpers % 10,
		   sum->lent, sum->jobs,
		   div64_u64(sum->ns / 1000, sum->jobs ?: 1));
}

/* Beside one thread twice: how far two equal ones are apart. */
static int show_load(struct seq_file *m, struct memory *memory)
{
	u64 with[LOAD_ROUNDS], without[2][LOAD_ROUNDS];
	struct beside jobs = {}, alone = {};
	int i, error = 0;
	u64 base;

	for (i = 0; i < LOAD_ROUNDS && !error; i++) {
		without[0][i] = load_beside(memory, &one, &alone, &error);
		with[i] = load_beside(memory, &all, &jobs, &error);
		without[1][i] = load_beside(memory, &one, &alone, &error);
	}
	if (error)
		return error;
	base = find_median(without[0], LOAD_ROUNDS);
	show_part(m, "a load beside jobs", find_median(with, LOAD_ROUNDS),
		  base);
	show_part(m, "a load beside one thread, again",
		  find_median(without[1], LOAD_ROUNDS), base);
	show_sums(m, "beside jobs", &jobs);
	show_sums(m, "beside one thread", &alone);
	return 0;
}

static int neighbour_show(struct seq_file *m, void *unused)
{
	struct memory memory = {};
	struct task_struct *load;
	int error;

	if (num_online_cpus() != 2)
		return -EOPNOTSUPP;
	error = memory_alloc(&memory, UNITS);
	load = error ? NULL : kthread_create(load_main, NULL, "load");
	if (IS_ERR(load))
		error = PTR_ERR(load);
	if (!error) {
		set_cpus_allowed_ptr(load, cpumask_of(1));
		wake_up_process(load);
		error = show_load(m, &memory);
		kthread_stop(load);
	}
	memory_free(&memory);
	return error;
}
DEFINE_SHOW_ATTRIBUTE(neighbour);

static int __init bench_init(void)
{
	dir = debugfs_create_dir("ktask_bench", NULL);
	debugfs_create_file("0-ceiling", 0400, dir, NULL, &ceiling_fops);
	debugfs_create_file("1-clear", 0400, dir, NULL, &clear_fops);
	debugfs_create_file("2-uniform", 0400, dir, NULL, &uniform_fops);
	debugfs_create_file("3-skewed", 0400, dir, NULL, &skewed_fops);
	debugfs_create_file("4-remote", 0400, dir, NULL, &remote_fops);
	debugfs_create_file("5-empty", 0400, dir, NULL, &empty_fops);
	debugfs_create_file("6-neighbour", 0400, dir, NULL, &neighbour_fops);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove(dir);
}

module_init(bench_init);
module_exit(bench_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("measurements of ktask inside the kernel");
