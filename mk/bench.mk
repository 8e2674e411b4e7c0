# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The benchmarks; doc/results.md has figures.  The one against the peers needs
# a C++ compiler and oneTBB, which nothing else does.

BENCH_COMMON := $(call obj,$(wildcard ktask/bench/common/*.c))
BENCH_C := $(wildcard ktask/bench/peers/*.c)
BENCH_CXX := $(wildcard ktask/bench/peers/*.cpp)
BENCH_OBJ := $(call obj,$(BENCH_C)) $(BENCH_CXX:%.cpp=$(OBJ)/%.o)
BENCH_CXXFLAGS := -std=c++17 $(OPT) $(SAN_$(VARIANT)) -Wall -Wextra -pthread \
	-fvisibility=hidden -fno-omit-frame-pointer

$(OBJ)/ktask/bench/peers/openmp.o: KT_CFLAGS += -fopenmp

$(OBJ)/%.o: %.cpp Makefile
	$(make_directory)
	$(CXX) $(BENCH_CXXFLAGS) $(call INC_of,$<) $(CXXFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/bench/bench-peers: $(BENCH_OBJ) $(BENCH_COMMON) $(OUT)/libktask.a
	$(make_directory)
	$(CXX) $(KT_LDFLAGS) -fopenmp -o $@ $^ -ltbb -ljansson -ldl -lm \
		$(LDFLAGS)

$(OUT)/bench/idle-pool: $(call obj,ktask/bench/idle/pool.c) $(OUT)/libktask.a
	$(make_directory)
	$(CC) $(KT_LDFLAGS) -o $@ $^ -ldl -lm $(LDFLAGS)

$(OUT)/bench/bench-overload: $(call obj,$(wildcard ktask/bench/overload/*.c)) \
		$(OUT)/libktask.a
	$(make_directory)
	$(CC) $(KT_LDFLAGS) -o $@ $^ -ldl -lm $(LDFLAGS)

$(OUT)/bench/bench-neighbour: $(call obj,$(wildcard ktask/bench/neighbour/*.c)) \
		$(BENCH_COMMON) $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ljansson -ldl -lm $(LDFLAGS)

$(OUT)/bench/bench-busy: $(call obj,ktask/bench/busy/main.c) $(BENCH_COMMON) \
		$(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ljansson -ldl -lm $(LDFLAGS)

$(OUT)/bench/bench-late: $(call obj,ktask/bench/late/main.c) $(BENCH_COMMON) \
		$(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ljansson -ldl -lm $(LDFLAGS)

$(OUT)/bench/bench-register: \
		$(call obj,$(wildcard ktask/bench/register/*.c)) $(BENCH_COMMON) \
		$(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ljansson -ldl -lm $(LDFLAGS)

# Without Jansson: a machine with a GPU need not have it.
$(OUT)/bench/bench-cuda: $(call obj,$(wildcard ktask/bench/cuda/*.c) \
		$(addprefix ktask/bench/common/,backing.c median_row.c others.c stats.c)) \
		$(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ldl -lm $(LDFLAGS)

# What a run may be given: make bench-peers BENCH='--only skewed --rounds 5'
BENCH ?=

## bench-peers: compare with pthreads, OpenMP, oneTBB and QEMU (BENCH=options)
.PHONY: bench-peers
bench-peers:
	+@$(MAKE) --no-print-directory deps NEED='build demo peers'
	+@$(MAKE) --no-print-directory bench-programs
	$(OUT)/bench/bench-peers --shim $(OUT)/libktask-preload.so \
		--idle $(OUT)/bench/idle-pool --output $(OUT)/bench-peers.json \
		$(BENCH)

## bench-overload: 200 processes at once, equal jobs, a second job (BENCH=options)
.PHONY: bench-overload
bench-overload:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-overload
	$(OUT)/bench/bench-overload $(BENCH)

$(OUT)/bench/small-calls: $(call obj,ktask/bench/shim/small-calls.c)
	$(make_directory)
	$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

$(OUT)/bench/bench-end: $(call obj,ktask/bench/shim/end.c)
	$(make_directory)
	$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

# The shim's address, and a variable as long for the side without it.
SHIM_ENV = LD_PRELOAD=$(abspath $(OUT)/libktask-preload.so)
PLAIN_ENV = $(subst LD_PRELOAD,NO_PRELOAD,$(SHIM_ENV))

## bench-busy: jobs, and ends of processes, beside busy ones (BENCH='10 -20')
.PHONY: bench-busy
bench-busy:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-busy
	$(OUT)/bench/bench-busy $(BENCH)

# make stress-busy MIBS='64' SECONDS=60
MIBS ?= 64 256
SECONDS ?= 10

## stress-busy: bench-busy beside any priority, with jobs of several sizes (MIBS= SECONDS=)
.PHONY: stress-busy
stress-busy:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-busy
	@ktask/bench/busy/stress.sh $(OUT) $(SECONDS) $(MIBS)

## bench-late: how late processes end in mid-chunk beside busy ones (BENCH='6 15')
.PHONY: bench-late
bench-late:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-late
	$(OUT)/bench/bench-late $(BENCH)

## bench-register: io_uring buffers and userfaultfd (BENCH='4096 9': MiB, rounds)
.PHONY: bench-register
bench-register:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-register
	$(OUT)/bench/bench-register $(BENCH)

## bench-cuda: cudaHostRegister and launches beside it, with a GPU (BENCH='32768 5 50': MiB, rounds, ms)
.PHONY: bench-cuda
bench-cuda:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-cuda
	$(OUT)/bench/bench-cuda $(BENCH)

## bench-shim: what the shim costs: small calls, and the start of `true`
.PHONY: bench-shim
bench-shim: $(OUT)/bench/small-calls $(OUT)/libktask-preload.so $(OUT)/ktask
	+@$(MAKE) --no-print-directory deps NEED='build check'
	@for round in 1 2 3; do $(OUT)/bench/small-calls; \
		printf 'with the shim: '; $(SHIM_ENV) $(OUT)/bench/small-calls; \
		done
	hyperfine --shell=none --warmup 50 --runs 1000 \
		'env $(PLAIN_ENV) true' 'env $(SHIM_ENV) true'
	hyperfine --shell=none --warmup 50 --runs 1000 \
		true '$(OUT)/ktask run true' '$(OUT)/ktask run --ahead=on true'

# make bench-end MIB=8192 ROUNDS=5
MIB ?= 4096
ROUNDS ?= 5

## bench-end: the end of a process with much memory (MIB= ROUNDS=)
.PHONY: bench-end
bench-end: $(OUT)/bench/bench-end $(OUT)/libktask-preload.so
	$(OUT)/ktask populate --anon $(MIB)M >/dev/null
	@for how in 'exit small' 'munmap small' exit munmap; do \
		$(OUT)/bench/bench-end $(abspath $(OUT)/libktask-preload.so) \
		$(MIB) $(ROUNDS) $$how; done

OPENMP := $(if $(HAVE_openmp),-fopenmp)
$(OBJ)/ktask/bench/ahead/touch-memory.o: KT_CFLAGS += $(OPENMP)

$(OUT)/bench/touch-memory: $(call obj,ktask/bench/ahead/touch-memory.c)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) $(OPENMP) -o $@ $^ $(LDFLAGS)

$(OUT)/bench/made-by-malloc.so: $(call obj,ktask/bench/ahead/made-by-malloc.c)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -o $@ $^ $(LDFLAGS)

# make bench-ahead ROWS='JVM numpy' ROUNDS=5 MIB=1024 LIMIT=300; ROWS=--list names them.
# LIMIT: seconds after which a row begins no other round.
LIMIT ?= 600
ROWS ?=

## bench-ahead: programs that touch memory, plain and in all ways of making it (ROWS= ROUNDS=9 MIB= LIMIT=)
.PHONY: bench-ahead
bench-ahead: all $(OUT)/bench/touch-memory $(OUT)/bench/made-by-malloc.so
	+@$(MAKE) --no-print-directory deps NEED='build ahead' || :
	+@$(MAKE) --no-print-directory servers || :
	ktask/bench/ahead/run.py $(OUT) --mib $(MIB) --limit $(LIMIT) --rounds \
		$(if $(findstring command,$(origin ROUNDS)),$(ROUNDS),9) $(ROWS)

## bench-qemu: a guest's start, with ktask run and threads of QEMU's own
.PHONY: bench-qemu
bench-qemu: all
	+@$(MAKE) --no-print-directory deps NEED='build demo'
	ktask/bench/shim/qemu.sh $(OUT) $(ROUNDS) $(MIB)

## bench-neighbour: jobs beside busy neighbours, and their threads (BENCH=options)
.PHONY: bench-neighbour
bench-neighbour:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-neighbour
	$(OUT)/bench/bench-neighbour --output $(OUT)/bench-neighbour.json $(BENCH)

$(OUT)/bench/pin: $(call obj,ktask/bench/software/pin.c)
	$(make_directory)
	$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

## bench-software: PostgreSQL, a JVM and pinned memory (PART=jvm RUNS=5 SIZE=mib)
.PHONY: bench-software
bench-software:
	+@$(MAKE) --no-print-directory deps NEED='build software database'
	+@$(MAKE) --no-print-directory all $(OUT)/bench/pin
	@ktask/bench/software/run.sh $(OUT) '$(PART)' '$(RUNS)' '$(SIZE)'

## bench-umt: heat and fwi with UMT off and on, heat's peers (BENCH='--only heat')
.PHONY: bench-umt
bench-umt:
	+@$(MAKE) --no-print-directory deps NEED='build umt apps peers tasks'
	+@$(MAKE) --no-print-directory apps heat-peers
	ktrt/bench/apps/run.py --build $(OUT) --output $(OUT)/bench-umt.json $(BENCH)

# ktask/core/ on a host that counts; static, so that a guest can run it.
$(OUT)/bench/bench-claim: $(wildcard ktask/bench/claim/*.[ch] ktask/core/*.[ch]) \
		$(wildcard ktask/bench/common/single_steps.[ch])
	$(make_directory)
	$(CC) $(KT_CFLAGS) -Iktask/bench/claim -Iktask -static -o $@ $(filter %.c,$^) \
		$(LDFLAGS)

## bench-claim: instructions and contention of claiming a chunk, 1 to 16 threads
.PHONY: bench-claim
bench-claim: $(OUT)/bench/bench-claim
	$<

# Static, so that a guest can run it too.
$(OUT)/bench/bench-users: $(call obj,ktask/bench/users/main.c \
		ktask/bench/common/stats.c) $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -static -o $@ $^ -lm $(LDFLAGS)

## bench-users: what one look at the registries of other users costs, as root
.PHONY: bench-users
bench-users:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-users
	$(OUT)/bench/bench-users

# The tree before the engine, and how often both sides take their turn.
OLD ?= 0ce6321^
TURNS ?= 31

## bench-fast-paths: jobs that do nothing, against the tree of another commit (OLD= TURNS=)
.PHONY: bench-fast-paths
bench-fast-paths: $(OUT)/libktask.a
	+@$(MAKE) --no-print-directory deps NEED='build check vm'
	@KTASK_BUILD='$(abspath $(B))' KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		CC='$(CC)' ktask/bench/fast_paths/compare '$(OLD)' $(TURNS)

# Built by the tests as well, so that it goes on building.
tests: bench-programs

.PHONY: bench-programs
bench-programs: $(OUT)/bench/bench-overload \
	$(if $(HAVE_openmp),$(if $(HAVE_tbb),$(OUT)/bench/bench-peers)) \
	$(OUT)/bench/idle-pool $(OUT)/bench/bench-neighbour \
	$(OUT)/bench/small-calls $(OUT)/bench/bench-end \
	$(OUT)/bench/bench-claim $(OUT)/bench/bench-users \
	$(OUT)/bench/bench-busy $(OUT)/bench/bench-late \
	$(OUT)/bench/bench-register $(OUT)/bench/bench-cuda \
	$(OUT)/bench/touch-memory $(OUT)/bench/made-by-malloc.so \
	$(OUT)/libktask-preload.so
