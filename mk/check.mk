# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Which tests there are and how they are built; tests/run runs and counts them.
#
# Of ktask, in ktask/tests:
#   unit/*.c         core, and arithmetic of the shim, linked with nothing else of
#                    ours, on a host that the test makes up (unit/support)
#   sim/*.c          the engine on a simulated machine; see mk/sim.mk
#   api/*.c          the library as a program sees it
#                    (both as plain, asan and tsan builds; KIND/support/*.c is linked
#                    into each test of the kind)
#   cli/*.bats       the command
#   preload/*.bats   the shim; *.c there are programs that know no ktask
#   software/*.bats  real programs, each with and without the shim
#   build/*.t        what the build makes of ktask alone
#   bindings/*.t     the wheel and the crates, by tests of their own
# Of the others:
#   umt/tests/*.c           libumt, as api; *.bats its command
#   ktrt/tests/runtime/*.c  the task runtime, likewise; *.cpp its C++ face
#   ktrt/tests/apps/*.bats  heat and fwi, by workers and by ranks
# Of all three, in tests:
#   vm/*.t           the module and the libraries in guests; see mk/vm.mk
#   bare/*.t         the tree where nothing is installed; see mk/bare.mk
#   build/*.t        what the build makes: symbols, headers, installation
#   style/*.t        how the tree reads
#   runner/*.t       the runner itself
# Besides, each example (PRODUCT/examples) must run and exit 0.

TEST_VARIANTS := plain asan tsan
# Kinds of tests in C, and the directory of each; they are built as tests/KIND/NAME.
C_KINDS := unit sim api umt runtime
DIRECTORY_unit := ktask/tests/unit
DIRECTORY_sim := ktask/tests/sim
DIRECTORY_api := ktask/tests/api
DIRECTORY_umt := umt/tests
DIRECTORY_runtime := ktrt/tests/runtime
sources_of = $(wildcard $(DIRECTORY_$(1))/*.c)
# The thread sanitizer has nothing to find in a program that makes no thread: most unit
# tests do not (unit/support/turns.h does).  A header that makes threads must be named here:
# ktask/tests/build/what-makes-threads-runs-under-the-thread-sanitizer.t looks into objects.
unit_without_tsan := $(shell grep -LE 'pthread|threads\.h|turns\.h|\bfork\b' \
	$(DIRECTORY_unit)/*.c)
.PHONY: unit-without-tsan
unit-without-tsan:
	@printf '%s\n' $(unit_without_tsan)

cxx_sources_of = $(if $(HAVE_cxx),$(wildcard $(DIRECTORY_$(1))/*.cpp))
# programs_of KIND,VARIANT
programs_of = $(patsubst $(DIRECTORY_$(1))/%,tests/$(1)/%,$(basename $(filter-out \
	$($(1)_without_$(2)),$(call sources_of,$(1)) $(call cxx_sources_of,$(1)))))
CTESTBIN := $(foreach kind,$(C_KINDS),$(addprefix $(OUT)/,\
	$(call programs_of,$(kind),$(VARIANT))))
support = $(call obj,$(wildcard tests/support/*.c $(DIRECTORY_$(1))/support/*.c))

$(call obj,$(foreach kind,$(C_KINDS),$(call sources_of,$(kind))) \
	$(foreach kind,$(C_KINDS),$(wildcard $(DIRECTORY_$(kind))/support/*.c)) \
	$(wildcard tests/support/*.c)): | $(call need,cc cmocka)

# A test's own code need not be fast, and there is three times as much of it as of
# the product: this takes a third of the time that it takes with -O2 to compile.
# Sanitizers see at least as much in it.
$(foreach directory,tests ktask/tests umt/tests ktrt/tests,$(OBJ)/$(directory)/%.o): \
	KT_CFLAGS += -O0 -g1
$(OBJ)/ktrt/tests/%.o: BENCH_CXXFLAGS += -std=c++11 -O0 -g1

# tests/support/failalloc.h: every allocation of the library can be refused.
TESTWRAP := malloc calloc realloc aligned_alloc posix_memalign mmap \
	pthread_create
TESTWRAP := $(TESTWRAP:%=-Wl,--wrap=%)

# Tests are 800 programs, each linked with all of a library: gold takes half the time.
TEST_LDFLAGS := $(KT_LDFLAGS) $(if $(HAVE_gold),-fuse-ld=gold)

$(OUT)/tests/unit.a: $(call obj,$(CORE) $(AHEAD) $(UTIL) $(LIB_UTIL) \
		ktask/sim/thread_curves.c)
	$(make_directory)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# Support is linked whole: ktest.c acts before main() without being called.
$(OUT)/tests/unit/%: $(OBJ)/$(DIRECTORY_unit)/%.o $(call support,unit) \
		$(OUT)/tests/unit.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

$(OUT)/tests/api/%: $(OBJ)/$(DIRECTORY_api)/%.o $(call support,api) $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

# Loads the library instead of being linked with it.
$(OUT)/tests/api/plugin-may-be-unloaded: | $(OUT)/libktask.so

# Not intermediate: the next build wants them.
.SECONDARY:

# Unmodified programs for the shim.
INNOCENT := $(patsubst ktask/%.c,$(OUT)/%,$(wildcard ktask/tests/preload/*.c))

$(INNOCENT): $(OUT)/%: $(OBJ)/ktask/%.o
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $< -ldl $(LDFLAGS)

EXAMPLES := $(patsubst ktask/%.c,$(OUT)/%,$(wildcard ktask/examples/*.c))

$(EXAMPLES): $(OUT)/%: $(OBJ)/ktask/%.o $(OUT)/libktask.so
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) '-Wl,-rpath,$$ORIGIN/..' -o $@ $< -L$(OUT) \
		-lktask $(LDFLAGS)

.PHONY: examples c-tests tests
examples: $(EXAMPLES)
c-tests: $(CTESTBIN)

# Two jobs unless the user said otherwise.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j2)
SUBMAKE = $(MAKE) --no-print-directory $(JOBS)

## tests: build everything that `make check` runs
tests: all c-tests vm-programs examples $(INNOCENT) $(if $(HAVE_python),$(WHEEL))
	+@for variant in $(filter-out plain,$(TEST_VARIANTS)); do \
		$(SUBMAKE) VARIANT=$$variant c-tests || exit 1; done
	$(call tell-left-out,$(OPTIONAL_tests))

variants_of = $(foreach v,$(TEST_VARIANTS),$(addprefix \
	$(B)/$(if $(filter-out plain,$v),$v/),$(call programs_of,$(1),$v)))

RUN_unit = $(call variants_of,unit)
RUN_sim = $(call variants_of,sim)
RUN_api = $(call variants_of,api)
RUN_umt = $(call variants_of,umt) $(wildcard umt/tests/*.bats)
RUN_runtime = $(call variants_of,runtime) $(wildcard ktrt/tests/runtime/*.bats) \
	$(patsubst ktrt/examples/%,$(B)/examples/runtime/%,$(basename \
	$(wildcard ktrt/examples/*.c $(if $(HAVE_cxx),ktrt/examples/*.cpp))))
RUN_apps = $(wildcard ktrt/tests/apps/*.bats)
RUN_cli = $(wildcard ktask/tests/cli/*.bats ktask/tests/preload/*.bats)
RUN_software = $(wildcard ktask/tests/software/*.bats)
RUN_bindings = $(wildcard ktask/tests/bindings/*.t)
RUN_build = $(wildcard tests/build/*.t ktask/tests/build/*.t) \
	$(patsubst ktask/%.c,$(B)/%,$(wildcard ktask/examples/*.c))
RUN_style = $(wildcard tests/style/*.t tests/runner/*.t)
# Guests take longest: they go first, beside whatever else there is.
RUN_ALL = $(RUN_vm) $(RUN_bare) $(RUN_bindings) $(RUN_style) $(RUN_build) $(RUN_unit) \
	$(RUN_sim) $(RUN_cli) $(RUN_umt) \
	$(RUN_runtime) $(RUN_apps) $(RUN_software) $(RUN_api)

# `make check ONLY=undo`: the tests with that word in their path.
only = $(if $(ONLY),$(foreach t,$(1),$(if $(findstring $(ONLY),$t),$t)),$(1))
# The day that the command line asks for: DAY may mean anything in an environment.
day = $(if $(findstring command,$(origin DAY)),$(DAY))
day_unless_asked = $(KTASK_TEST_DAY)
# make check EXCUSED=tests/bare/excused: no other reason that something is not installed.
excused = $(if $(findstring command,$(origin EXCUSED)),--excused '$(EXCUSED)')
# make check TEST_JOBS=8: so many test programs at once, for a machine that others keep busy.
test_jobs = $(if $(findstring command,$(origin TEST_JOBS)),--jobs '$(TEST_JOBS)')
run = @MAKE='$(MAKE)' CC='$(CC)' CXX='$(CXX)' \
	KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
	KTASK_TEST_KERNELS='$(abspath $(KERNEL_CACHE))' \
	KTASK_TEST_BARE_CACHE='$(abspath $(BARE_CACHE))' \
	KTASK_TEST_DAY='$(or $(day),$(day_unless_asked))' \
	LTP_SOURCE='$(if $(LTP_SOURCE),$(abspath $(LTP_SOURCE)))' tests/run --build $(B) \
	$(excused) $(test_jobs) $(2) $(call only,$(1))

# make check DAY=all: also what is left to other days (tests/support/Sample.pm)

## check: install what is missing, build, run the day's tests (DAY=all, ONLY=word)
.PHONY: check
check:
	+@$(MAKE) --no-print-directory deps
	+@$(MAKE) --no-print-directory deps NEED='$(NEED_OF_TESTS)' || :
	+@$(MAKE) --no-print-directory deps NEED=allocators || :
	+@$(MAKE) --no-print-directory deps NEED='$(NEED_OF_CRATES)' || :
	+@$(MAKE) --no-print-directory servers || :
	+@$(if $(DRY_RUN),$(SUBMAKE) tests,begin=$$(date +%s); $(SUBMAKE) tests && \
		{ echo $$(($$(date +%s) - begin)); times; } >$(B)/made)
	$(call run,$(RUN_ALL),--made $(B)/made)

## servers: unpack those of the tests, as far as they are not installed
.PHONY: servers
servers:
	@ktask/tests/software/fetch '$(B)/servers' $(sort $(DEPS_database))

KINDS := $(addprefix check-,unit sim api umt runtime apps cli build bindings)

## check-unit check-sim check-api check-umt check-runtime check-apps check-cli check-build check-bindings: one kind of test
.PHONY: $(KINDS)
$(KINDS): check-%:
	+@$(MAKE) --no-print-directory deps
	+@$(SUBMAKE) tests
	$(call run,$(RUN_$*))

## check-software: the shim under databases, a JVM, Redis and others (installs them)
.PHONY: check-software
check-software:
	+@$(MAKE) --no-print-directory deps NEED='build demo check software'
	+@$(MAKE) --no-print-directory servers || :
	+@$(SUBMAKE) all
	$(call run,$(RUN_software))

# make soak-shim FOR=600
FOR ?= 3600

## soak-shim: random calls with and without the shim, for an hour (FOR=seconds)
.PHONY: soak-shim
soak-shim:
	+@$(MAKE) --no-print-directory deps
	+@$(SUBMAKE) all $(INNOCENT)
	KTASK_BUILD=$(abspath $(B)) KTASK_TEST_SECONDS=$(FOR) \
		bats ktask/tests/preload/random-calls-behave-as-plain-calls.bats

# git clone https://github.com/linux-test-project/ltp; its source, built or not

## check-ltp: memory tests of LTP with and without the shim (LTP=directory, ONLY=words)
.PHONY: check-ltp
check-ltp: all
	@[ -n '$(LTP)' ] || { echo 'make check-ltp LTP=DIRECTORY: where LTP is'; exit 2; }
	@built=$$(ktask/tests/ltp/build '$(LTP)' '$(B)/ltp') || { echo "$$built"; exit 1; }; \
		ktask/tests/ltp/compare '$(B)' "$$built" $(ONLY)

## check-style: the tests of the tree and of the runner; builds nothing
.PHONY: check-style
check-style:
	+@$(MAKE) --no-print-directory deps
	$(call run,$(RUN_style))
