# SPDX-License-Identifier: GPL-2.0-only OR MIT
# ktrt: libktrt, made in ktrt/runtime, on top of libktask and libumt.

RT_OBJ := $(call obj,$(wildcard ktrt/runtime/*.c))
# A task may leave by pthread_exit(), which unwinds through these.
$(RT_OBJ): KT_CFLAGS += -fexceptions
$(RT_OBJ): | $(call need,cc)
# The libraries below it lie beside it; empty where the loader finds them by itself.
RUNPATH ?= '-Wl,-rpath,$$ORIGIN'

$(OUT)/libktrt.so.$(VERSION): $(RT_OBJ) ktrt/runtime/libktrt.map \
		$(OUT)/libktask.so $(OUT)/libumt.so
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -Wl,-soname,libktrt.so.$(SOVERSION) \
		-Wl,--version-script=ktrt/runtime/libktrt.map -Wl,-z,nodelete \
		-Wl,-z,defs $(RUNPATH) -o $@ $(RT_OBJ) -L$(OUT) -lumt -lktask $(LDFLAGS)

$(OUT)/libktrt.so: $(OUT)/libktrt.so.$(VERSION)
	$(Q)ln -sf libktrt.so.$(VERSION) $(OUT)/libktrt.so.$(SOVERSION)
	$(Q)ln -sf libktrt.so.$(VERSION) $@

$(OUT)/libktrt.a: $(RT_OBJ)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# What a static link of the runtime needs.
RT_STATIC = $(OUT)/libktrt.a $(OUT)/libumt.a $(OUT)/libktask.a
RT_LIBS = $(UMT_LIBS) -ldl -lm

RT_CMD := $(call obj,$(wildcard ktrt/cmd/*.c))
$(RT_CMD): | $(call need,cc)

$(OUT)/ktrt-info: $(RT_CMD) $(RT_STATIC)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(RT_LIBS) $(LDFLAGS)

# The archive to install: as that of libktask.
$(OUT)/install/libktrt.a: $(RT_OBJ)
	$(make_directory)
	$(call say,AR)
	$(Q)$(LD) -r -o $(@D)/libktrt.o $(RT_OBJ)
	$(Q)$(OBJCOPY) --localize-hidden $(@D)/libktrt.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(@D)/libktrt.o

all: $(OUT)/libktrt.so $(OUT)/libktrt.a $(OUT)/ktrt-info

# Examples: each must run and exit 0.
RT_EXAMPLES := $(OUT)/examples/runtime
RT_EXAMPLES_C := $(patsubst ktrt/examples/%.c,$(RT_EXAMPLES)/%,\
	$(wildcard ktrt/examples/*.c))
RT_EXAMPLES_CXX := $(patsubst ktrt/examples/%.cpp,$(RT_EXAMPLES)/%,\
	$(wildcard ktrt/examples/*.cpp))
RT_EXAMPLE_LINK = '-Wl,-rpath,$$ORIGIN/../..' -L$(OUT) -lktrt \
	-Wl,-rpath-link,$(OUT) $(LDFLAGS)

$(RT_EXAMPLES_C): $(RT_EXAMPLES)/%: $(OBJ)/ktrt/examples/%.o $(OUT)/libktrt.so
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $< $(RT_EXAMPLE_LINK)

$(RT_EXAMPLES_CXX): $(RT_EXAMPLES)/%: ktrt/examples/%.cpp $(wildcard ktrt/include/ktask/runtime.*) \
		$(OUT)/libktrt.so
	$(make_directory)
	$(call say,CXX)
	$(Q)$(CXX) -std=c++11 -O2 -g -Wall -Wextra -pthread $(INSTALLED) \
		$(CXXFLAGS) -o $@ $< $(RT_EXAMPLE_LINK)

examples: $(RT_EXAMPLES_C) $(if $(HAVE_cxx),$(RT_EXAMPLES_CXX))

# Tests of the runtime: as ktask/tests/api, but with this library.
$(OUT)/tests/runtime/%: $(OBJ)/$(DIRECTORY_runtime)/%.o $(call support,runtime) \
		$(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka $(RT_LIBS) \
		$(LDFLAGS)

RT_TESTS_CXX := $(addprefix $(OUT)/,$(patsubst $(DIRECTORY_runtime)/%.cpp,\
	tests/runtime/%,$(call cxx_sources_of,runtime)))
$(RT_TESTS_CXX): $(OUT)/tests/runtime/%: $(OBJ)/$(DIRECTORY_runtime)/%.o \
		$(call support,runtime) $(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CXX) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka $(RT_LIBS) \
		$(LDFLAGS)

# ---- benchmarks ----

TASKS_MAIN := $(call obj,$(patsubst %,ktrt/bench/%.c,tasks/main tasks/graphs \
	tasks/blocking tasks/idle programs/kernels programs/verified))
# Where their loops lie must not depend on what else is in the program.
$(call obj,ktrt/bench/tasks/main.c ktrt/bench/programs/kernels.c): \
	KT_CFLAGS += -falign-functions=64 -falign-loops=64
TASKS_PROGRAMS := $(OUT)/bench/bench-tasks-ktrt $(OUT)/bench/bench-tasks-futex \
	$(OUT)/bench/bench-tasks-alone $(OUT)/bench/bench-tasks-least
TASKS_PEERS := $(if $(HAVE_cxx),$(OUT)/bench/bench-tasks-ktrtxx) \
	$(if $(HAVE_openmp),$(OUT)/bench/bench-tasks-libgomp) \
	$(if $(HAVE_libomp),$(OUT)/bench/bench-tasks-libomp) \
	$(if $(HAVE_tbb),$(OUT)/bench/bench-tasks-tbb) \
	$(if $(HAVE_taskflow),$(OUT)/bench/bench-tasks-taskflow)

$(OUT)/bench/bench-tasks-ktrt: $(call obj,ktrt/bench/tasks/ktrt.c \
		ktrt/bench/programs/ktrt.c) $(TASKS_MAIN) \
		$(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(RT_LIBS) $(LDFLAGS)

$(OUT)/bench/bench-tasks-ktrtxx: $(OBJ)/ktrt/bench/tasks/ktrtxx.o \
		$(OBJ)/ktrt/bench/programs/ktrtxx.o $(TASKS_MAIN) \
		$(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CXX) $(KT_LDFLAGS) -o $@ $^ $(RT_LIBS) $(LDFLAGS)

$(OUT)/bench/bench-tasks-futex: $(call obj,ktrt/bench/tasks/futex.c) $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

$(OUT)/bench/bench-tasks-least: $(call obj,ktrt/bench/tasks/least.c) $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

# Those of OpenMP, whose tasks are a remark to a compiler without it.
$(OUT)/bench/bench-tasks-alone: ktrt/bench/tasks/alone.c ktrt/bench/programs/openmp.c \
		$(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_CFLAGS) -Wno-unknown-pragmas $(INC_ktrt) -o $@ $^ $(LDFLAGS)

TASKS_OPENMP := ktrt/bench/tasks/openmp.c ktrt/bench/programs/openmp.c

$(OUT)/bench/bench-tasks-libgomp: $(TASKS_OPENMP) $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_CFLAGS) $(INC_ktrt) -fopenmp -o $@ $^ $(LDFLAGS)

# Version 5 has dependences by an iterator.
$(OUT)/bench/bench-tasks-libomp: $(TASKS_OPENMP) $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(TASKS_CLANG) -std=gnu11 -O2 -g $(INC_ktrt) -fopenmp \
		-fopenmp-version=50 -o $@ $^ $(LDFLAGS)

$(OUT)/bench/bench-tasks-tbb: $(OBJ)/ktrt/bench/tasks/tbb.o \
		$(OBJ)/ktrt/bench/programs/tbb.o $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CXX) $(KT_LDFLAGS) -o $@ $^ -ltbb $(LDFLAGS)

$(OBJ)/ktrt/bench/tasks/taskflow.o: BENCH_CXXFLAGS += -std=c++20 $(TASKFLOW:%=-I%)

$(OUT)/bench/bench-tasks-taskflow: $(OBJ)/ktrt/bench/tasks/taskflow.o $(TASKS_MAIN)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CXX) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

.PHONY: bench-tasks-programs
bench-tasks-programs: $(TASKS_PROGRAMS) $(TASKS_PEERS)

# Those with a toolchain of their own: where that is missing there is a reason beside
# the program.
TASKS_OTHERS := $(OUT)/bench/bench-tasks-go $(OUT)/bench/bench-tasks-tokio

$(OUT)/bench/bench-tasks-go: $(wildcard ktrt/bench/tasks/go/*)
	$(make_directory)
	$(call say,GO)
	$(Q)ktrt/bench/apps/peers/build go $(abspath $@) ktrt/bench/tasks

$(OUT)/bench/bench-tasks-tokio: $(wildcard ktrt/bench/tasks/rust/*)
	$(make_directory)
	$(call say,RUST)
	$(Q)ktrt/bench/apps/peers/build rust $(abspath $@) ktrt/bench/tasks

# The tests look at their results, and the sanitizers at ours.
tests: bench-tasks-programs
c-tests: $(OUT)/bench/bench-tasks-ktrt \
	$(if $(HAVE_cxx),$(OUT)/bench/bench-tasks-ktrtxx)

## bench-tasks: the runtime beside OpenMP, oneTBB, Taskflow, Go and Tokio (BENCH=options)
.PHONY: bench-tasks
bench-tasks:
	+@$(MAKE) --no-print-directory deps NEED='build umt peers tasks'
	+@$(MAKE) --no-print-directory bench-tasks-programs $(TASKS_OTHERS)
	ktrt/bench/tasks/run.pl --output $(OUT)/bench-tasks.json $(BENCH) $(OUT)/bench

## bench-metg: for graphs of five patterns, the task time at half efficiency (BENCH=options)
.PHONY: bench-metg
bench-metg:
	+@$(MAKE) --no-print-directory deps NEED='build umt peers tasks'
	+@$(MAKE) --no-print-directory bench-tasks-programs
	ktrt/bench/tasks/run.pl --rounds 1 --only metg --output $(OUT)/bench-metg.json \
		$(BENCH) $(OUT)/bench

# Task Bench's own sources, compiled here.  They are neither part of this tree nor in any
# package: TASK_BENCH=DIR is a clone of github.com/StanfordLegion/task-bench.
TASK_BENCH ?=
TASK_BENCH_CORE := $(OUT)/task-bench/core
TASK_BENCH_OBJ := $(patsubst %,$(TASK_BENCH_CORE)/%.o,core core_c core_kernel timer \
	core_random siphash)
TASK_BENCH_FLAGS := -O3 -march=native -pthread

$(TASK_BENCH_CORE)/%.o: $(TASK_BENCH)/core/%.cc
	$(make_directory)
	$(call say,CXX)
	$(Q)$(CXX) -std=c++11 $(TASK_BENCH_FLAGS) -w -c -o $@ $<

$(TASK_BENCH_CORE)/%.o: $(TASK_BENCH)/core/%.c
	$(make_directory)
	$(call say,CC)
	$(Q)$(CC) -std=c11 $(TASK_BENCH_FLAGS) -w -c -o $@ $<

# Its assertions are what checks the results: never with NDEBUG.
$(OUT)/bench/task-bench-ktrt: ktrt/bench/task-bench/main.cpp $(TASK_BENCH_OBJ) \
		$(wildcard ktrt/include/ktask/runtime.*) $(RT_STATIC)
	$(make_directory)
	$(call say,CXX)
	$(Q)$(CXX) -std=c++17 $(OPT) -Wall -Wextra $(INSTALLED) \
		-isystem $(TASK_BENCH)/core $(CXXFLAGS) -UNDEBUG $(KT_LDFLAGS) -o $@ \
		$(filter-out %.h %.hpp,$^) $(RT_LIBS) $(LDFLAGS)

tests: $(if $(wildcard $(TASK_BENCH)/core/core.h),$(OUT)/bench/task-bench-ktrt)

## bench-task-bench: Task Bench by the runtime (TASK_BENCH=DIR of its sources, BENCH=options)
.PHONY: bench-task-bench
bench-task-bench:
	@test -e '$(TASK_BENCH)/core/core.h' || { echo 'ktask: TASK_BENCH=DIR: where' \
		'github.com/StanfordLegion/task-bench lies' >&2; exit 2; }
	+@$(MAKE) --no-print-directory deps NEED='build umt check'
	+@$(MAKE) --no-print-directory $(OUT)/bench/task-bench-ktrt
	ktrt/bench/task-bench/validate.pl --output $(OUT)/bench-task-bench.json \
		$(BENCH) $(OUT)/bench/task-bench-ktrt
