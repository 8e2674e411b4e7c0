# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Kernels that have ktask built in, and clients for it: the patch series, each a directory
# of ktask/kernel/series.  Sources and kernels are kept in KERNEL_CACHE (3 GB).

KERNEL_CACHE ?= $(B)/kernels
KERNEL_SERIES := $(notdir $(patsubst %/series,%,\
	$(wildcard ktask/kernel/series/*/series)))
BUILD_KERNEL := ktask/kernel/series/build

# Goals and SERIES= name 7.x by its 7.
KERNEL_GOALS := $(KERNEL_SERIES:%.x=%)
KERNEL_GOALS := $(KERNEL_GOALS:%=kernel-%)
series_named = $(or $(filter $(1) $(1).x,$(KERNEL_SERIES)),$(error no series $(1)))

## kernel-6.12, kernel-7: build a kernel with the series and one without (10 minutes)
.PHONY: $(KERNEL_GOALS)
$(KERNEL_GOALS): kernel-%:
	+@$(MAKE) --no-print-directory deps NEED='build check vm debug'
	@$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $(call series_named,$*)

# Those with the series of Linux 6.12 that find errors: KASAN, lockdep, kmemleak,
# allocations that fail; and KCSAN.  And one with mistakes, to see that tests find them.
DEBUG_GOALS := kernel-6.12-kasan kernel-6.12-kcsan kernel-6.12-planted
## kernel-6.12-kasan, kernel-6.12-kcsan: patched kernels that find errors (20 minutes each)
.PHONY: $(DEBUG_GOALS)
$(DEBUG_GOALS): kernel-6.12-%:
	+@$(MAKE) --no-print-directory deps NEED='build check vm debug'
	@$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' 6.12 $*

## check-kernel: build each patch of each series, test the clients in guests (LTP_SOURCE=)
.PHONY: check-kernel
check-kernel: export KTASK_TEST_ALL_SHAPES = 1
check-kernel: $(KERNEL_GOALS) $(DEBUG_GOALS)
	@for series in $(KERNEL_SERIES); do \
		$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $$series each && \
		$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $$series || exit 1; \
	done
	+@$(SUBMAKE) vm-programs
	$(call run,$(wildcard tests/vm/a-patched-kernel-*.t \
		tests/vm/memory-tests-of-ltp-*.t \
		tests/vm/the-kernels-own-tests-*.t tests/vm/debug/clients-of-a-patched-kernel-*.t \
		tests/vm/debug/mistakes-*.t \
		tests/vm/a-mock-device-*.t tests/vm/vfio-of-a-stock-kernel-*.t))

## bench-kernel: time the clients on both kernels (SERIES= BOOTS=5 OVERCOMMITTED=1 OFF=1 ACCOUNTING=1 COUNTED=1 SHAPES= CLIENTS= MINUTES=)
SERIES ?= 6.12
.PHONY: bench-kernel
bench-kernel: kernel-$(SERIES:%.x=%)
	$(if $(ACCOUNTING),@$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' \
		$(call series_named,$(SERIES)) alone)
	@KTASK_BUILD='$(abspath $(B))' CC='$(CC)' \
		KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		KTASK_TEST_KERNELS='$(abspath $(KERNEL_CACHE))' \
		ktask/bench/vm/series $(or $(BOOTS),5) $(call series_named,$(SERIES)) \
		$(if $(OVERCOMMITTED),overcommitted,$(if $(OFF),off,$(if \
		$(ACCOUNTING),accounting,$(if $(COUNTED),counted)))) $(MINUTES:%=minutes=%) \
		$(CLIENTS:%=clients=%) $(SHAPES)
