# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The main job, for somebody who sees ktask for the first time.  SIZE is the
# guest's memory (as 8G; default: what fits), RUNS the counted runs of each.

## demo: start a big-memory guest with 1 to N threads (SIZE=8G RUNS=5)
.PHONY: demo
demo:
	@$(MAKE) --no-print-directory deps NEED='build demo'
	@$(SUBMAKE) -s all
	@bench/demo.sh '$(OUT)' '$(RUNS)' '$(SIZE)'
