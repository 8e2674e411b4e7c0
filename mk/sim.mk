# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The simulated host: core and engine of ktask once more, on ktask/sim/port.
#
#   ktask/tests/sim/*.c      the engine on the simulated host, in virtual time

SIM := $(wildcard ktask/sim/*.c)
INC_sim := -Iktask -I. -Iktask/sim/port

sim_obj = $(patsubst %.c,$(OBJ)/on-sim/%.o,$(1))
SIMOBJ := $(call sim_obj,$(CORE) $(ENGINE) $(SIM))
SIM_TESTS := $(wildcard ktask/tests/sim/*.c)
SIM_SUPPORT := $(call sim_obj,$(wildcard ktask/tests/sim/support/*.c)) \
	$(call obj,tests/support/ktest.c)

$(OBJ)/on-sim/%.o: %.c Makefile mk/sim.mk
	$(make_directory)
	$(call say,CC)
	$(Q)$(CC) $(KT_CFLAGS) $(INC_sim) -Itests/support $(CFLAGS) -MMD -MP \
		-c -o $@ $<

$(call sim_obj,$(SIM_TESTS)): | $(call need,cc cmocka)

$(SIM_TESTS:ktask/%.c=$(OUT)/%): $(OUT)/%: $(OBJ)/on-sim/ktask/%.o $(SIM_SUPPORT) $(SIMOBJ)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ldl $(LDFLAGS)

## check-mutations: which seed finds each of the mistakes in ktask/tests/sim/mutations
.PHONY: check-mutations
check-mutations:
	@CC='$(CC)' ktask/tests/sim/mutations

## update-mutations: the same, and write the table of ktask/doc/simulation.md
.PHONY: update-mutations
update-mutations:
	@CC='$(CC)' ktask/tests/sim/mutations --update

$(OUT)/bench/bench-sim: $(call sim_obj,ktask/bench/sim/main.c) $(SIMOBJ)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

## bench-sim: jobs on 1,024 CPUs and 200 machines that start at once, simulated
.PHONY: bench-sim
bench-sim: $(OUT)/bench/bench-sim
	@$< $(OUT)/bench-sim.series | tee $(OUT)/bench-sim.txt
	@! command -v gnuplot >/dev/null || ktask/bench/sim/plot \
		$(OUT)/bench-sim.txt $(OUT)/bench-sim.series $(OUT)/bench-sim.svg

## update-sim-plots: the same, and write the plots of ktask/doc/simulation.md
.PHONY: update-sim-plots
update-sim-plots: bench-sim
	@cp $(OUT)/bench-sim.svg ktask/doc/simulation.svg
