/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask topo: the machine as ktask sees it, and how many threads a job that
 * is started from here would get and why.
 *
 * The machine comes from hwloc and can be another one (HWLOC_XMLFILE); the
 * limits come from the library and are always of this process, here, now.
 */
#include <stdbool.h>

#include <ktask/ktask.h>

#include "cli/bench/bench.h"
#include "cmd.h"
#include "cli/bench/machine.h"
#include "cli/ui/command_options.h"
#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "cli/topo/topo_command.h"

static const char usage_text[] =
	"usage: ktask topo [--json]\n\n"
	"Show CPUs, nodes and caches of this machine, what limits the\n"
	"threads of a job that is started here, and which operations\n"
	"the kernel's module would do instead of this process.\n\n"
	"  --json            print one JSON object\n"
	"  --help            print this\n";

static void read_limits(struct topo *topo)
{
	unsigned nr;

	topo->limits[0] = (struct ktask_limit)KTASK_LIMIT_INIT;
	nr = (unsigned)ktask_limits(topo->limits, LEAST_LIMIT_MOST);
	topo->nr_limits = nr < LEAST_LIMIT_MOST ? nr : LEAST_LIMIT_MOST;
	topo->threads = least_limit_of(topo->limits, topo->nr_limits, NULL);
}

static void read_engines(struct topo *topo)
{
	const struct ktask_op *op;

	topo->nr_engines = 0;
	for (unsigned i = 0; (op = ktask_op_at(i)); i++) {
		struct topo_engine *found = &topo->engines[topo->nr_engines];

		if (topo->nr_engines == TOPO_ENGINES)
			break;
		found->engine = (struct ktask_engine)KTASK_ENGINE_INIT;
		if (ktask_op_engine(op, &found->engine))
			continue;
		found->operation = ktask_op_name(op);
		topo->nr_engines++;
	}
}

static int show_topology(bool json)
{
	struct topo topo;
	int error = machine_topology(&topo.hwloc);
	int status = 0;

	if (error)
		return say_error(-error, "topo: reading the topology");
	machine_read(&topo.machine, topo.hwloc);
	read_engines(&topo);
	read_limits(&topo);
	if (json)
		status = json_write(topo_json(&topo), NULL);
	else
		topo_print(&topo);
	hwloc_topology_destroy(topo.hwloc);
	return status;
}

int cmd_topo(int argc, char **argv)
{
	bool json = false;
	const struct option_spec specs[] = {
		{ "json", no_argument, option_flag, &json },
		{ 0 },
	};
	int status = options_parse("topo", usage_text, specs, true, argc, argv);

	if (!status)
		status = options_end("topo", argc, argv);
	return status ? status : show_topology(json);
}
