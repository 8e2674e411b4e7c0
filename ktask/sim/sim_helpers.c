/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers of the simulated host: the threads that take items, the permits that the
 * helpers of all processes share, and the processes.  See sim_host.h.
 *
 * Locking: none; see sim_host.c.
 */
#include <stdio.h>
#include <string.h>

#include "sim/sim_host.h"
#include "sim/sim_parts.h"
#include "sim/sim_shares.h"

/* As in user/: a helper that cannot begin sleeps so long. */
#define NAP_NS 250000
/* About what it costs to wake a thread. */
#define WAKE_NS 3000
/* The parent of a fork holds its permits so long at most. */
#define PARENT_NS 1000000

static struct {
	unsigned limit, used;
} shared_permits;

void helpers_reset(unsigned permits)
{
	shared_permits.limit = permits;
	shared_permits.used = 0;
}

void sim_host_permits(unsigned permits)
{
	sim_trace("permits: %u", permits);
	shared_permits.limit = permits;
	shares_set_permits(permits);
}

unsigned sim_host_permits_used(void)
{
	return shared_permits.used;
}

static bool take_permit(struct sim_process *process)
{
	if (shared_permits.used >= shared_permits.limit)
		return false;
	shared_permits.used++;
	process->shared++;
	return true;
}

void helpers_put_permit(struct kt_item *item)
{
	struct sim_process *process = ((struct sim_job *)item->ctx)->process;

	if (!item->host.shared)
		return;
	item->host.shared = false;
	shared_permits.used--;
	process->shared--;
}

/* Return: false if it could not begin. */
static bool run_item(struct sim_helper *helper)
{
	struct kt_item *item = helper->item;
	struct sim_job *job = (struct sim_job *)item->ctx;
	struct sim_process *process = helper->process;
	bool permitted = item->permitted;
	bool child;

	if (permitted && !take_permit(process))
		return false;
	item->host.shared = permitted;
	sim_trace("begins item %u", item->index);
	child = process->child;
	jobs_enter(job, item);
	kt_item_work(item);
	jobs_leave();
	sim_trace("leaves item %u", item->index);
	/* A chunk forked: the permits are the parent's. */
	if (child != process->child)
		return true;
	helpers_put_permit(item);
	kt_item_release(item);
	return true;
}

static void leave_item(struct sim_helper *helper, enum kt_item_state state)
{
	sim_point();
	helper->state = state;
	if (state == KT_ITEM_DONE)
		helper->item = NULL;
	if (helper->waiter)
		sim_wake(helper->waiter);
	sim_set_weight(sim_self(), SIM_WEIGHT_IDLE);
}

static void helper_main(void *arg)
{
	struct sim_helper *helper = arg;
	bool child = helper->process->child;

	for (;;) {
		bool begun;

		sim_point();
		if (helper->state != KT_ITEM_QUEUED) {
			sim_block(SIM_NEVER);
			continue;
		}
		helper->state = KT_ITEM_RUNNING;
		/* From here on the engine sees that it runs, and it may get no
		 * CPU. */
		helper->item->host.begun_ns = kt_now_ns();
		sim_spend(sim_random(2 * WAKE_NS));
		begun = run_item(helper);
		if (child != helper->process->child)
			return;
		helper->declined = !begun;
		if (begun) {
			leave_item(helper, KT_ITEM_DONE);
			continue;
		}
		leave_item(helper, KT_ITEM_QUEUED);
		sim_block(NAP_NS);
	}
}

static void start_helper(struct sim_helper *helper)
{
	struct sim_process *process = helper->process;
	char name[24];

	snprintf(name, sizeof(name), "helper %u",
		 (unsigned)(helper - process->helpers) + 1);
	helper->state = KT_ITEM_DONE;
	helper->item = NULL;
	helper->waiter = NULL;
	helper->thread = sim_spawn(name, helper_main, helper, SIM_WEIGHT_IDLE,
				   &process->cpus, true);
}

static void make_helper(struct sim_process *process)
{
	struct sim_helper *helper = &process->helpers[process->nr_helpers++];

	memset(helper, 0, sizeof(*helper));
	helper->process = process;
	helper->never = sim_random(100) < process->never_percent;
	start_helper(helper);
}

void sim_process_init(struct sim_process *process, unsigned nr_helpers)
{
	const struct sim_machine *m = sim_machine();

	process->nr_helpers = 0;
	process->child = false;
	process->shared = 0;
	process->parents = 0;
	process->machine = (struct kt_cap){ .limit = nr_helpers };
	memset(&process->cpus, 0, sizeof(process->cpus));
	for (unsigned i = 0; i < m->nr_cpus; i++)
		sim_put_in(&process->cpus, i);
	for (unsigned i = 0; i < m->nr_nodes; i++)
		process->nodes[i] = (struct kt_cap){
			.limit = (m->nr_cpus + m->nr_nodes - 1) / m->nr_nodes,
		};
	while (process->nr_helpers < nr_helpers)
		make_helper(process);
}

static void end_parent(void *arg)
{
	struct sim_process *process = arg;

	shared_permits.used -= process->parents;
	process->parents = 0;
}

/* The child is that of a fork only once; what a former parent held is over. */
void sim_process_fork(struct sim_process *process)
{
	sim_trace("forks: this is the child");
	sim_stop_daemon();
	process->child = true;
	process->parents = process->shared;
	process->shared = 0;
	sim_at(sim_now() + sim_random(PARENT_NS), end_parent, process);
	for (unsigned i = 0; i < process->nr_helpers; i++) {
		struct sim_helper *helper = &process->helpers[i];

		if (helper->thread != sim_self())
			sim_kill(helper->thread);
		start_helper(helper);
	}
	process->machine.used = 0;
	for (unsigned i = 0; i < SIM_NODES_MAX; i++)
		process->nodes[i].used = 0;
	for (struct sim_job *job = jobs_current(); job; job = job->outer)
		kt_context_orphan(&job->ctx);
}
