// SPDX-License-Identifier: GPL-2.0-only
/*
 * See scheduler.h.
 *
 * libbpf 1.1 can load tables of operations (struct_ops), but it has no links for them.
 * Without a link the scheduler would outlive a process that is killed.  So the link is
 * made here by bpf_link_create(); later versions of libbpf do it themselves.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "scx/scheduler.h"

#include <scx_ktask.skel.h>

/* <linux/bpf.h> has these since Linux 6.4. */
#define LINKED_TABLE (1u << 13) /* BPF_F_LINK */
#define ATTACH_TABLE 44 /* BPF_STRUCT_OPS */
#ifndef BPF_F_SLEEPABLE
#define BPF_F_SLEEPABLE (1u << 4)
#endif

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"
/* The youngest of the functions in scx_kernel.h.  Linux 6.12 to 6.17 lack it. */
#define YOUNGEST_FUNCTION "scx_bpf_task_set_slice"

static struct scx_ktask_bpf *loaded_program;
static struct bpf_link *table_link;
static int link_fd = -1;

static int drop_message(enum libbpf_print_level level, const char *format,
			va_list args)
{
	return 0;
}

static void write_caches(const struct caches *caches)
{
	struct scx_ktask_bpf__rodata *to = loaded_program->rodata;

	to->nr_caches = caches->nr;
	for (unsigned i = 0; i <= SCX_CACHES_MAX; i++)
		to->first_of_cache[i] = caches->first[i];
	for (unsigned i = 0; i < SCX_CPUS_MAX; i++) {
		to->cpus_by_cache[i] = caches->cpus[i];
		to->cache_of_cpu[i] = caches->of_cpu[i];
	}
}

/* libbpf 1.1 has no section for operations that may sleep. */
static int load_program(const struct caches *caches)
{
	int error = bpf_program__set_flags(loaded_program->progs.ktask_init,
					   BPF_F_SLEEPABLE);

	if (!error)
		error = bpf_map__set_map_flags(loaded_program->maps.ktask_sched,
					       LINKED_TABLE);
	if (error)
		return error;
	write_caches(caches);
	return scx_ktask_bpf__load(loaded_program);
}

static int attach_table(void)
{
	int table = bpf_map__fd(loaded_program->maps.ktask_sched);

	table_link =
		bpf_map__attach_struct_ops(loaded_program->maps.ktask_sched);
	if (!table_link)
		return -errno;
	if (bpf_link__fd(table_link) != table)
		return 0;
	link_fd = bpf_link_create(table, 0, (enum bpf_attach_type)ATTACH_TABLE,
				  NULL);
	return link_fd < 0 ? -errno : 0;
}

static int load_and_attach(const struct caches *caches, const char **doing)
{
	int error;

	*doing = "reading the scheduler";
	loaded_program = scx_ktask_bpf__open();
	if (!loaded_program)
		return -errno;
	*doing = "loading the scheduler";
	error = load_program(caches);
	if (error)
		return error;
	*doing = "starting the scheduler";
	return attach_table();
}

/* Where the kernel's types cannot be read, loading says why. */
bool scheduler_fits_kernel(void)
{
	struct btf *types = btf__parse_raw(KERNEL_TYPES);
	bool fits = !types || btf__find_by_name_kind(types, YOUNGEST_FUNCTION,
						     BTF_KIND_FUNC) > 0;

	btf__free(types);
	return fits;
}

int scheduler_load(const struct caches *caches, bool is_verbose,
		   const char **doing)
{
	int error;

	if (!is_verbose)
		libbpf_set_print(drop_message);
	error = load_and_attach(caches, doing);
	if (error)
		scheduler_unload();
	return error;
}

bool scheduler_ended(void)
{
	return *(volatile int *)&loaded_program->bss->exit_kind;
}

bool scheduler_failed(const char **reason, const char **message)
{
	*reason = loaded_program->bss->exit_reason;
	*message = loaded_program->bss->exit_message;
	return loaded_program->bss->exit_kind >= SCX_EXIT_IS_ERROR;
}

uint64_t scheduler_count(enum scx_count count)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < SCX_CPUS_MAX; cpu++)
		sum += loaded_program->bss->cpu_states[cpu].counts[count];
	return sum;
}

void scheduler_unload(void)
{
	if (link_fd >= 0)
		close(link_fd);
	link_fd = -1;
	bpf_link__destroy(table_link);
	table_link = NULL;
	scx_ktask_bpf__destroy(loaded_program);
	loaded_program = NULL;
}
