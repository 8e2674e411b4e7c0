# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Which tests there are and how they are built; tests/run runs and counts them.
#
#   tests/unit/*.c     core, linked with nothing else of ours, on a host that
#                      the test makes up (tests/unit/support)
#   tests/sim/*.c      the engine on a simulated machine; see mk/sim.mk
#   tests/api/*.c      the library as a program sees it
#                      (both as plain, asan and tsan builds; KIND/support/*.c
#                      is linked into each test of the kind)
#   tests/umt/*.c      libumt, likewise; *.bats its command
#   tests/runtime/*.c  the task runtime, likewise
#   tests/apps/*.bats  heat and fwi, by workers and by ranks
#   tests/cli/*.bats   the command
#   tests/preload/*.bats  the shim; *.c there are programs that know no ktask
#   tests/software/*.bats  real programs, each with and without the shim
#   tests/bindings/*.t the wheel and the crates, by tests of their own
#   tests/vm/*.t       the module and the library in guests; see mk/vm.mk
#   tests/bare/*.t     the tree where nothing is installed; see mk/bare.mk
#   tests/build/*.t    what the build makes: symbols, headers, installation
#   tests/style/*.t    how the tree reads
#   tests/runner/*.t   the runner itself
#   examples/*.c       each must run and exit 0

TEST_VARIANTS := plain asan tsan
CTESTS := $(wildcard tests/unit/*.c tests/sim/*.c tests/api/*.c \
	tests/umt/*.c tests/runtime/*.c)
CTESTBIN := $(CTESTS:%.c=$(OUT)/%)
support = $(call obj,$(wildcard tests/support/*.c tests/$(1)/support/*.c))

$(call obj,$(CTESTS) $(foreach kind,unit sim api umt runtime,\
	$(wildcard tests/$(kind)/support/*.c)) $(wildcard tests/support/*.c)): \
	| $(call need,cc cmocka)

# A test's own code need not be fast, and there is three times as much of it as of
# the product: this halves the time that all tests take to compile.
$(OBJ)/tests/%.o: KT_CFLAGS += -O1 -g1

# tests/support/failalloc.h: every allocation of the library can be refused.
TESTWRAP := malloc calloc realloc aligned_alloc posix_memalign mmap \
	pthread_create
TESTWRAP := $(TESTWRAP:%=-Wl,--wrap=%)

$(OUT)/tests/unit.a: $(call obj,$(CORE))
	@mkdir -p $(@D)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# Support is linked whole: ktest.c acts before main() without being called.
$(OUT)/tests/unit/%: $(OBJ)/tests/unit/%.o $(call support,unit) \
		$(OUT)/tests/unit.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

$(OUT)/tests/api/%: $(OBJ)/tests/api/%.o $(call support,api) $(OUT)/libktask.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

# Loads the library instead of being linked with it.
$(OUT)/tests/api/plugin-may-be-unloaded: | $(OUT)/libktask.so

# Not intermediate: the next build wants them.
.SECONDARY:

# Unmodified programs for the shim.
INNOCENT := $(patsubst %.c,$(OUT)/%,$(wildcard tests/preload/*.c))

$(INNOCENT): $(OUT)/%: $(OBJ)/%.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $< -ldl $(LDFLAGS)

EXAMPLES := $(patsubst %.c,$(OUT)/%,$(wildcard examples/*.c))

$(EXAMPLES): $(OUT)/%: $(OBJ)/%.o $(OUT)/libktask.so
	@mkdir -p $(@D)
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

variants_of = $(foreach v,$(TEST_VARIANTS),$(patsubst %.c,\
	$(B)/$(if $(filter-out plain,$v),$v/)%,$(wildcard tests/$(1)/*.c)))

RUN_unit = $(call variants_of,unit)
RUN_sim = $(call variants_of,sim)
RUN_api = $(call variants_of,api)
RUN_umt = $(call variants_of,umt) $(wildcard tests/umt/*.bats)
RUN_runtime = $(call variants_of,runtime) $(wildcard tests/runtime/*.bats) \
	$(addprefix $(B)/,$(basename $(wildcard examples/runtime/*.c \
	$(if $(HAVE_cxx),examples/runtime/*.cpp))))
RUN_apps = $(wildcard tests/apps/*.bats)
RUN_cli = $(wildcard tests/cli/*.bats tests/preload/*.bats)
RUN_software = $(wildcard tests/software/*.bats)
RUN_bindings = $(wildcard tests/bindings/*.t)
RUN_build = $(wildcard tests/build/*.t) \
	$(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
RUN_style = $(wildcard tests/style/*.t tests/runner/*.t)
# Guests take longest: they go first, beside whatever else there is.
RUN_ALL = $(RUN_vm) $(RUN_bare) $(RUN_bindings) $(RUN_style) $(RUN_build) $(RUN_unit) \
	$(RUN_sim) $(RUN_cli) $(RUN_umt) \
	$(RUN_runtime) $(RUN_apps) $(RUN_software) $(RUN_api)

# `make check ONLY=undo`: the tests with that word in their path.
only = $(if $(ONLY),$(foreach t,$(1),$(if $(findstring $(ONLY),$t),$t)),$(1))
run = @MAKE='$(MAKE)' CC='$(CC)' CXX='$(CXX)' \
	KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
	KTASK_TEST_BARE_CACHE='$(abspath $(BARE_CACHE))' tests/run --build $(B) \
	$(call only,$(1))

## check: install what is missing, build, run every test (ONLY=word: some)
.PHONY: check
check:
	+@$(MAKE) --no-print-directory deps
	+@$(MAKE) --no-print-directory deps NEED='software cross' || :
	+@$(MAKE) --no-print-directory servers || :
	+@$(SUBMAKE) tests
	$(call run,$(RUN_ALL))

## servers: unpack those of the tests, as far as they are not installed
.PHONY: servers
servers:
	@tests/software/fetch '$(B)/servers' $(sort $(DEPS_database))

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
		bats tests/preload/random-calls-behave-as-plain-calls.bats

## check-style: the tests of the tree and of the runner; builds nothing
.PHONY: check-style
check-style:
	+@$(MAKE) --no-print-directory deps
	$(call run,$(RUN_style))
