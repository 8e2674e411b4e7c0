# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Kernels that have ktask built in, and clients for it: the patch series, each a directory
# of ktask/kernel/series.  Sources and kernels are kept in KERNEL_CACHE (3 GB).

KERNEL_CACHE ?= $(B)/kernels
KERNEL_SERIES := $(notdir $(patsubst %/series,%,\
	$(wildcard ktask/kernel/series/*/series)))
BUILD_KERNEL := ktask/kernel/series/build

## kernel-6.12: build a kernel with the series and one without (once, 10 minutes)
.PHONY: $(KERNEL_SERIES:%=kernel-%)
$(KERNEL_SERIES:%=kernel-%): kernel-%:
	+@$(MAKE) --no-print-directory deps NEED='build check vm debug'
	@$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $*

## check-kernel: build each patch of each series, test the clients in guests
.PHONY: check-kernel
check-kernel: $(KERNEL_SERIES:%=kernel-%)
	@for series in $(KERNEL_SERIES); do \
		$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $$series each && \
		$(BUILD_KERNEL) '$(abspath $(KERNEL_CACHE))' $$series || exit 1; \
	done
	+@$(SUBMAKE) vm-programs
	@KTASK_TEST_ALL_SHAPES=1 KTASK_BUILD='$(abspath $(B))' MAKE='$(MAKE)' \
		CC='$(CC)' KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		KTASK_TEST_KERNELS='$(abspath $(KERNEL_CACHE))' \
		tests/run --build $(B) $(wildcard tests/vm/a-patched-kernel-*.t \
		tests/vm/a-mock-device-*.t)

## bench-kernel: time the series' clients on both kernels (BOOTS=5 OVERCOMMITTED=1 SHAPES=)
.PHONY: bench-kernel
bench-kernel: $(KERNEL_SERIES:%=kernel-%)
	@KTASK_BUILD='$(abspath $(B))' CC='$(CC)' \
		KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		KTASK_TEST_KERNELS='$(abspath $(KERNEL_CACHE))' \
		ktask/bench/vm/series $(or $(BOOTS),5) 6.12 \
		$(if $(OVERCOMMITTED),overcommitted) $(SHAPES)
