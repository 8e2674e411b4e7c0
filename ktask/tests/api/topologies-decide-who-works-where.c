/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On recorded machines: what is read of them, in which order a worker of each
 * node goes through the nodes' work, whose CPUs serve a node, how many helpers
 * each may have, and which CPUs the helpers of a caller get, one by one.
 *
 * What is decided is written down as text, so that the table below reads as the
 * description of a machine and of what ktask makes of it.
 */
#include "ktest.h"
#include "topology.h"

#include "core/caps.h"
#include "core/claim.h"
#include "user/machine/topo.h"

#define TEXT 4096
#define UNITS 6

struct machine {
	const char *name;
	const char *nodes; /* "ID: CPUS" */
	const char *cores; /* those with siblings; and the slow CPUs */
	const char *order; /* "ID: the nodes whose work it does, in order" */
	const char *served; /* "ID by ID, ID", if not by itself */
	const char *caps; /* of the machine, then of the nodes, at 80 % */
	const char *allowed; /* to the caller, who is on its first CPU */
	const char *helpers; /* CPUs of the first, the second, ... */
};

static char *end_of(char *text)
{
	return text + strlen(text);
}

static void cut_last(char *text, const char *what)
{
	size_t len = strlen(text), cut = strlen(what);

	if (len >= cut && !strcmp(text + len - cut, what))
		text[len - cut] = '\0';
}

/* ---- what was read ---- */

static void tell_nodes(char *text)
{
	const struct topo *topo = topo_get();

	if (topo->nr_nodes == 1) {
		sprintf(text, "one of %u", topo->nr_cpus);
		return;
	}
	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		sprintf(end_of(text), "%d: ", topo->ids[i]);
		topology_list(text, &topo->node_cpus[i]);
		strcat(text, "; ");
	}
	cut_last(text, "; ");
}

static void tell_cores(char *text)
{
	const struct topo *topo = topo_get();

	for (unsigned core = 0; core < 64 && topo->cores.core; core++) {
		char siblings[128] = "";

		for (unsigned cpu = 0; cpu < 64; cpu++)
			if (topo->core[cpu] == core)
				sprintf(end_of(siblings), "+%u", cpu);
		if (strchr(siblings + 1, '+'))
			sprintf(end_of(text), "%s ", siblings + 1);
	}
	if (topo->cores.slow) {
		strcat(text, "slow ");
		topology_list(text, &topo->slow);
	}
	cut_last(text, " ");
}

/* ---- what is decided ---- */

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static void tell_order_of(char *text, int id)
{
	const struct topo *topo = topo_get();
	struct kt_range ranges[TOPO_NODES_MAX];
	struct kt_job job = {
		.func = do_nothing,
		.split = { .min_chunk = 1, .align = 1, .target_ns = 1 },
		.ranges = ranges,
		.nr_ranges = topo->nr_nodes,
	};
	unsigned last = TOPO_NODES_MAX;
	struct kt_worker worker;
	struct kt_chunk chunk;

	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		ranges[i].start = NULL;
		ranges[i].units = UNITS;
		ranges[i].node = topo->ids[i];
	}
	kt_job_begin(&job);
	kt_worker_begin(&worker, &job, id, 0);
	sprintf(end_of(text), "%d:", id);
	while (kt_claim(&job, &worker, &chunk)) {
		if (worker.range != last)
			sprintf(end_of(text), " %d", topo->ids[worker.range]);
		last = worker.range;
	}
}

static void tell_order(char *text)
{
	const struct topo *topo = topo_get();

	for (unsigned i = 0; topo->nr_nodes > 1 && i < topo->nr_nodes; i++) {
		tell_order_of(text, topo->ids[i]);
		strcat(text, "; ");
	}
	cut_last(text, "; ");
}

static void tell_served(char *text)
{
	const struct topo *topo = topo_get();

	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		char who[64] = "";
		int before = -2;

		if (topo->nr_node_cpus[i])
			continue;
		for (unsigned turn = 0; turn < 4; turn++) {
			int by = kt_placement_node(topo->ids[i], topo->ids,
						   topo->nr_node_cpus,
						   topo->nr_nodes, turn);

			if (by < 0)
				strcpy(who, "nobody");
			else if (by != before && turn < 2)
				sprintf(end_of(who), "%d, ", topo->ids[by]);
			before = by;
		}
		cut_last(who, ", ");
		sprintf(end_of(text), "%d by %s; ", topo->ids[i], who);
	}
	cut_last(text, "; ");
}

static void tell_caps(char *text)
{
	const struct topo *topo = topo_get();

	sprintf(text, "%u", kt_cap_limit(topo->nr_cpus, 80));
	for (unsigned i = 0; topo->nr_nodes > 1 && i < topo->nr_nodes; i++)
		sprintf(end_of(text), "%s%u", i ? "," : ": ",
			kt_cap_node_limit(topo->nr_node_cpus[i], 80));
}

static struct kt_cpus parse_cpus(const char *list)
{
	struct kt_cpus cpus = { 0 };
	char *end = (char *)list;

	while (*end) {
		unsigned from = (unsigned)strtoul(end, &end, 10), to = from;

		if (*end == '-')
			to = (unsigned)strtoul(end + 1, &end, 10);
		for (; from <= to; from++)
			cpus_set(&cpus, from);
		end += *end == ',';
	}
	return cpus;
}

static void tell_helpers(char *text, const char *allowed)
{
	const struct kt_cores *cores = &topo_get()->cores;
	struct kt_cpus all = parse_cpus(allowed), cpus;
	int caller = atoi(allowed);
	struct kt_placement_capacity capacity;

	kt_placement_capacity(cores, all.words, caller, &capacity);
	for (unsigned others = 0; others + 1 < cpus_count(&all); others++) {
		kt_placement_cpus(cores, all.words, caller,
				  kt_placement_level(&capacity, others),
				  cpus.words);
		topology_list(text, &cpus);
		strcat(text, " ");
	}
	cut_last(text, " ");
}

/* ---- the machines ---- */

static const struct machine machines[] = {
	{
		.name = "one-node",
		.nodes = "one of 4",
		.caps = "3",
		.allowed = "0-3",
		.helpers = "1-3 1-3 1-3",
	},
	{
		.name = "two-nodes",
		.nodes = "0: 0-3,8-11; 1: 4-7,12-15",
		.cores = "0+8 1+9 2+10 3+11 4+12 5+13 6+14 7+15",
		.order = "0: 0 1; 1: 1 0",
		.caps = "12: 6,6",
		.allowed = "0-15",
		.helpers = "1-7 1-7 1-7 1-7 1-7 1-7 1-7 1-7,9-15 1-7,9-15 "
			   "1-7,9-15 1-7,9-15 1-7,9-15 1-7,9-15 1-7,9-15 1-15",
	},
	{
		.name = "two-nodes",
		.nodes = "0: 0-3,8-11; 1: 4-7,12-15",
		.cores = "0+8 1+9 2+10 3+11 4+12 5+13 6+14 7+15",
		.order = "0: 0 1; 1: 1 0",
		.caps = "12: 6,6",
		.allowed = "0-3,8-11",
		.helpers = "1-3 1-3 1-3 1-3,9-11 1-3,9-11 1-3,9-11 1-3,8-11",
	},
	{
		.name = "four-nodes",
		.nodes = "0: 0-3; 1: 4-7; 2: 8-11; 3: 12-15",
		.order = "0: 0 1 3 2; 1: 1 0 2 3; 2: 2 1 3 0; 3: 3 0 2 1",
		.caps = "12: 3,3,3,3",
		.allowed = "0-15",
		.helpers = "1-15 1-15 1-15 1-15 1-15 1-15 1-15 1-15 1-15 1-15 "
			   "1-15 1-15 1-15 1-15 1-15",
	},
	{
		.name = "four-nodes-asymmetric",
		.nodes = "0: 0-1; 1: 2-3; 2: 4-5; 3: 6-7",
		.order = "0: 0 1 2 3; 1: 1 2 3 0; 2: 2 3 0 1; 3: 3 0 1 2",
		.caps = "6: 1,1,1,1",
		.allowed = "0-7",
		.helpers = "1-7 1-7 1-7 1-7 1-7 1-7 1-7",
	},
	{
		.name = "eight-nodes",
		.nodes = "0: 0-3; 1: 4-7; 2: 8-11; 3: 12-15; 4: 16-19; 5: "
			 "20-23; "
			 "6: 24-27; 7: 28-31",
		.cores = "0+1 2+3 4+5 6+7 8+9 10+11 12+13 14+15 16+17 18+19 "
			 "20+21 22+23 24+25 26+27 28+29 30+31",
		.order =
			"0: 0 1 2 3 4 5 6 7; 1: 1 0 2 3 4 5 6 7; 2: 2 0 1 3 4 "
			"5 "
			"6 7; 3: 3 0 1 2 4 5 6 7; 4: 4 5 6 7 0 1 2 3; 5: 5 4 6 "
			"7 0 1 2 3; 6: 6 4 5 7 0 1 2 3; 7: 7 4 5 6 0 1 2 3",
		.caps = "25: 3,3,3,3,3,3,3,3",
		.allowed = "4-7",
		.helpers = "6 6-7 5-7",
	},
	{
		.name = "memory-only",
		.nodes = "0: 0-3; 1: 4-7; 2: ; 3: ",
		.order = "0: 0 1 2 3; 1: 1 2 0 3; 2: 2 1 0 3; 3: 3 0 1 2",
		.served = "2 by 1; 3 by 0, 1",
		.caps = "6: 3,3,0,0",
		.allowed = "0-7",
		.helpers = "1-7 1-7 1-7 1-7 1-7 1-7 1-7",
	},
	{
		.name = "cpu-only",
		.nodes = "0: 0-1; 1: 2-3; 2: 4-5",
		.order = "0: 0 1 2; 1: 1 2 0; 2: 2 1 0",
		.caps = "4: 1,1,1",
		.allowed = "2-3",
		.helpers = "3",
	},
	{
		.name = "sparse-nodes",
		.nodes = "0: 0-3; 8: 4-7; 252: ; 255: ",
		.order = "0: 0 8 252 255; 8: 8 0 252 255; 252: 252 0 8 255; "
			 "255: "
			 "255 0 8 252",
		.served = "252 by 0, 8; 255 by 0, 8",
		.caps = "6: 3,3,0,0",
		.allowed = "4-7",
		.helpers = "5-7 5-7 5-7",
	},
	{
		.name = "hybrid",
		.nodes = "one of 10",
		.cores = "0+1 2+3 slow 4-9",
		.caps = "8",
		.allowed = "0-9",
		.helpers = "2 2,4-9 2,4-9 2,4-9 2,4-9 2,4-9 2,4-9 2-9 1-9",
	},
	{
		.name = "hybrid",
		.nodes = "one of 10",
		.cores = "0+1 2+3 slow 4-9",
		.caps = "8",
		.allowed = "4-9",
		.helpers = "5-9 5-9 5-9 5-9 5-9",
	},
	{
		.name = "big-little",
		.nodes = "one of 8",
		.cores = "slow 0-3",
		.caps = "6",
		.allowed = "0-7",
		.helpers = "4-7 4-7 4-7 4-7 1-7 1-7 1-7",
	},
	{
		.name = "scattered-siblings",
		.nodes = "one of 8",
		.cores = "0+5 1+6 2+3 4+7",
		.caps = "6",
		.allowed = "2-7",
		.helpers = "4-6 4-6 4-6 4-7 3-7",
	},
	{
		.name = "four-threads",
		.nodes = "one of 8",
		.cores = "0+2+4+6 1+3+5+7",
		.caps = "6",
		.allowed = "0-7",
		.helpers = "1 1,3,5,7 1,3,5,7 1,3,5,7 1-7 1-7 1-7",
	},
	{
		.name = "offline",
		.nodes = "0: 0,2-3; 1: 4",
		.cores = "2+3",
		.order = "0: 0 1; 1: 1 0",
		.caps = "3: 2,1",
		.allowed = "0,2-4",
		.helpers = "2,4 2,4 2-4",
	},
	{
		.name = "guest-threads",
		.nodes = "one of 4",
		.cores = "0+1 2+3",
		.caps = "3",
		.allowed = "0-3",
		.helpers = "2 2-3 1-3",
	},
	{
		.name = "guest-two",
		.nodes = "0: 0-1; 1: 2-3",
		.order = "0: 0 1; 1: 1 0",
		.caps = "3: 1,1",
		.allowed = "0-3",
		.helpers = "1-3 1-3 1-3",
	},
	{
		.name = "guest-four",
		.nodes = "0: 0-1; 1: 2-3; 2: 4-5; 3: ",
		.order = "0: 0 1 2 3; 1: 1 3 0 2; 2: 2 0 3 1; 3: 3 1 2 0",
		.served = "3 by 1",
		.caps = "4: 1,1,1,0",
		.allowed = "0-5",
		.helpers = "1-5 1-5 1-5 1-5 1-5",
	},
	{
		.name = "guest-eight",
		.nodes = "0: 0; 1: 1; 2: 2; 3: 3; 4: 4; 5: 5; 6: 6; 7: 7",
		.order =
			"0: 0 1 2 3 4 5 6 7; 1: 1 0 2 3 4 5 6 7; 2: 2 3 0 1 4 "
			"5 6 7; 3: 3 2 0 1 4 5 6 7; 4: 4 5 6 7 0 1 2 3; 5: 5 4 "
			"6 7 0 1 2 3; 6: 6 7 4 5 0 1 2 3; 7: 7 6 4 5 0 1 2 3",
		.caps = "6: 1,1,1,1,1,1,1,1",
		.allowed = "0-7",
		.helpers = "1-7 1-7 1-7 1-7 1-7 1-7 1-7",
	},
	{
		.name = "silent",
		.nodes = "one of 4",
		.caps = "3",
		.allowed = "0-3",
		.helpers = "1-3 1-3 1-3",
	},
	{
		.name = "garbage",
		.nodes = "0: ; 1: ; 2: ",
		.order = "0: 0 1 2; 1: 1 2 0; 2: 2 0 1",
		.served = "0 by nobody; 1 by nobody; 2 by nobody",
		.caps = "3: 0,0,0",
		.allowed = "0-3",
		.helpers = "1-3 1-3 1-3",
	},
};

static int tell_difference(const char *what, const char *is,
			   const char *expected)
{
	if (!strcmp(is, expected ? expected : ""))
		return 0;
	fprintf(stderr, "# %s is      \"%s\"\n# %s must be \"%s\"\n", what, is,
		what, expected ? expected : "");
	return 1;
}

static int compare_all(void *arg)
{
	const struct machine *machine = arg;
	char text[7][TEXT] = { "" };
	int wrong;

	tell_nodes(text[0]);
	tell_cores(text[1]);
	tell_order(text[2]);
	tell_served(text[3]);
	tell_caps(text[4]);
	tell_helpers(text[5], machine->allowed);
	wrong = tell_difference("nodes", text[0], machine->nodes);
	wrong += tell_difference("cores", text[1], machine->cores);
	wrong += tell_difference("order", text[2], machine->order);
	wrong += tell_difference("served", text[3], machine->served);
	wrong += tell_difference("caps", text[4], machine->caps);
	wrong += tell_difference("helpers", text[5], machine->helpers);
	return wrong;
}

static void machine_is_as_described(void **state)
{
	struct tree tree;

	topology_begin(&tree, ((struct machine *)*state)->name);
	/* The library reads a machine once in a process. */
	assert_int_equal(ktest_in_child(compare_all, *state), 0);
	topology_end(&tree);
}

int main(void)
{
	struct CMUnitTest tests[KTEST_ARRAY_SIZE(machines)];

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(machines); i++)
		tests[i] = (struct CMUnitTest){
			.name = machines[i].name,
			.test_func = machine_is_as_described,
			.initial_state = (void *)&machines[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
