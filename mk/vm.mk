# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The kernel module, built and tested for the kernels of tests/vm/kernels in
# guests.  Kernels are fetched once and kept in VM_CACHE; remove VM_CACHE/NAME to
# get the newest.

VM_CACHE ?= $(B)/vm

RUN_vm = $(wildcard tests/vm/*.t)

## check-vm: build ktask.ko for several kernels, test it in guests
.PHONY: check-vm
check-vm:
	+@$(MAKE) --no-print-directory deps NEED='build check vm'
	@mkdir -p $(B)
	@KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' CC='$(CC)' tests/run \
		--build $(B) $(call only,$(RUN_vm))
