# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What can be built here.  scripts/features finds out by linking, and asks again
# when a tool or a package has changed.  Included before every other part.

MPICC ?= mpicc
BPF_CLANG ?= clang
# The compiler whose OpenMP is one of the peers.
TASKS_CLANG ?= clang
# The Python that the wheel is made with; it runs with later ones too.
PYTHON ?= python3
# Where taskflow/taskflow.hpp is, if the compiler does not know.
TASKFLOW ?=
# Features to take as missing: make WITHOUT='ebpf mpi'
WITHOUT ?=

FEATURES := $(OUT)/features
# With sanitizers only tests are built, and no program of another's runtime, whose headers
# are most of what it takes to ask.
NOT_ASKED := $(WITHOUT)$(if $(filter-out plain,$(VARIANT)), libomp tbb taskflow)
quoted = '$(subst ','\'',$(1))'
ASK_FEATURES = CC=$(call quoted,$(CC)) CXX=$(call quoted,$(CXX)) \
	MPICC=$(call quoted,$(MPICC)) BPFTOOL=$(call quoted,$(BPFTOOL)) \
	BPF_CLANG=$(call quoted,$(BPF_CLANG)) \
	OMP_CLANG=$(call quoted,$(TASKS_CLANG)) \
	PYTHON=$(call quoted,$(PYTHON)) TASKFLOW=$(call quoted,$(TASKFLOW)) \
	FLAGS=$(call quoted,$(OPT) $(SAN_$(VARIANT)) $(CFLAGS)) \
	CXX_FLAGS=$(call quoted,$(OPT) $(SAN_$(VARIANT)) $(CXXFLAGS)) \
	LDFLAGS=$(call quoted,$(LDFLAGS)) WITHOUT=$(call quoted,$(NOT_ASKED)) \
	scripts/features

# A dry run (make -n) leaves build/ as it is.  It may find answers there, and asks beside it.
DRY_RUN := $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
ifeq ($(DRY_RUN),)
_ := $(shell $(ASK_FEATURES) $(FEATURES))
-include $(FEATURES)/answers.mk
else
DRY_FEATURES := $(shell mktemp -d)
_ := $(shell cp $(FEATURES)/* $(DRY_FEATURES) 2>/dev/null; \
	$(ASK_FEATURES) $(DRY_FEATURES))
$(eval $(file <$(DRY_FEATURES)/answers.mk))
_ := $(shell rm -rf $(DRY_FEATURES))
endif

# `make clean all` removes the answers after make has read them.
$(addprefix $(FEATURES)/,launcher sdt ebpf mpi):
	@rm -f $(FEATURES)/key
	@$(ASK_FEATURES) $(FEATURES)

# What cannot be built without a feature says so: TARGET: | $(call need,FEATURE...)
need = $(foreach f,$(1),$(if $(HAVE_$f),,missing-$f))
NEEDED := cc hwloc jansson xxhash cmocka python
NAME_python = Python.h of Python 3.11 or later ($(PYTHON))
NAME_cc = C compiler with headers ($(CC))

.PHONY: $(NEEDED:%=missing-%)
$(NEEDED:%=missing-%): missing-%:
	@cat $(FEATURES)/$*.log >&2
	@echo 'ktask: building: no $(or $(NAME_$*),$*): run "make deps"' >&2
	@exit 1

# Without one of these features a part is left out.  LEFT_feature names the part,
# ADD_feature the group of packages in mk/deps.mk that brings it.
OPTIONAL_all := ebpf mpi sdt
OPTIONAL_tests := $(OPTIONAL_all) cxx openmp libomp tbb python
LEFT_ebpf := scx_ktask, umtd, and eBPF in libumt: umt stat, umt top, umt record
ADD_ebpf := umt
LEFT_mpi := MPI in heat and fwi: more than one rank
ADD_mpi := apps
LEFT_sdt := static tracepoints of libktask
ADD_sdt := build
LEFT_cxx := the examples in C++
ADD_cxx := check
LEFT_openmp := the peers that use OpenMP
ADD_openmp := build
LEFT_libomp := the peers that use OpenMP of LLVM
ADD_libomp := tasks
LEFT_python := the wheel ktask
ADD_python := bindings
LEFT_tbb := the peers that use oneTBB, and bench-peers
ADD_tbb := peers

# $(call tell-left-out,FEATURES): prints one block at the end of a goal, or
# nothing.  What WITHOUT names is not told of.
comma := ,
left-out = $(strip $(foreach f,$(filter-out $(NOT_ASKED),$(1)),\
	$(if $(HAVE_$f),,$f)))
tell-left-out = $(if $(call left-out,$(1)),@printf '%s\n' '' \
	'Left out. To add a part$(comma) run its command and then make again:' \
	$(foreach f,$(call left-out,$(1)), \
	'  make deps NEED=$(ADD_$f)	$(LEFT_$f)') \
	'The reasons are in $(FEATURES)/*.log.')

## features: what was found here, and what is left out (WITHOUT='ebpf mpi': leave out)
.PHONY: features
features:
	@for feature in $(sort $(NEEDED) $(OPTIONAL_tests) stackprobes \
		gold launcher taskflow); do \
		printf '%-11s %s\n' $$feature "$$(cat $(FEATURES)/$$feature)"; \
		done
