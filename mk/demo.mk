# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The main job, for somebody who sees ktask for the first time.  It measures
# for about a minute.  SIZE is the guest's memory (as 8G; default: what fits,
# into the time too), RUNS the counted rounds (default: until settled).

## demo: start a big-memory guest with 1 to N threads (SIZE=8G RUNS=8)
.PHONY: demo
demo:
	@$(MAKE) --no-print-directory deps NEED='build demo'
	@$(SUBMAKE) -s all OPTIONAL_all=
	@ktask/bench/demo.sh '$(OUT)' '$(RUNS)' '$(SIZE)'
