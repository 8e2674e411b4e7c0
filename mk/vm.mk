# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The kernel module, built and tested for the kernels of tests/vm/kernels in
# guests.  Kernels are fetched once and kept in VM_CACHE (820 MB, which clones
# may share), with the modules that were built for them last; remove VM_CACHE/NAME
# to get the newest.

VM_CACHE ?= $(B)/vm

RUN_vm = $(wildcard tests/vm/*.t)

# Programs for guests are built as those of the API are.
VM_PROGRAMS := $(patsubst %.c,$(OUT)/%,$(wildcard tests/vm/user/*.c))
VM_ALSO := $(patsubst %,$(OUT)/tests/%,$(shell sed '/^#/d' tests/vm/user/also))

$(OUT)/tests/vm/user/%: $(OBJ)/tests/vm/user/%.o $(call support,api) \
		$(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

# Tests of registering with devices, and what they share.
VM_DEVICE_PARTS := $(addprefix tests/vm/devices/,counts.c mapping_sides.c \
	rdma_link.c verbs.c) tests/vm/vfio_device.c
VM_DEVICE_TESTS := $(patsubst %.c,$(OUT)/%,$(filter-out $(VM_DEVICE_PARTS), \
	$(wildcard tests/vm/devices/*.c)))

$(VM_DEVICE_TESTS): $(OUT)/%: $(OBJ)/%.o $(call obj,$(VM_DEVICE_PARTS)) \
		$(call support,api) $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

# Tests of the scheduler, and what they share.
VM_SCX_PARTS := $(addprefix tests/vm/scx/,busy_threads.c scheduler_process.c)
VM_SCX_TESTS := $(if $(HAVE_ebpf),$(patsubst %.c,$(OUT)/%,$(filter-out \
	$(VM_SCX_PARTS),$(wildcard tests/vm/scx/*.c))))

$(VM_SCX_TESTS): $(OUT)/%: $(OBJ)/%.o $(call obj,$(VM_SCX_PARTS)) \
		$(call support,api) $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka -ldl -lm $(LDFLAGS)

# They share the requests with PID 1, which is built without this Makefile.
$(call obj,$(addprefix tests/vm/,vfio/main.c request.c files.c)): \
	KT_CFLAGS += -Iktask/include/uapi -U_GNU_SOURCE

# The library beside the module; static, as those guests have no libraries.
VM_STATIC := $(addprefix $(OUT)/tests/vm/,engines ktaskd vfio)

$(OUT)/tests/vm/engines: $(call obj,tests/vm/engines/main.c)
$(OUT)/tests/vm/ktaskd: $(call obj,$(DAEMON) $(AHEAD) $(UTIL))
$(OUT)/tests/vm/vfio: $(call obj,$(addprefix tests/vm/,vfio/main.c request.c \
	files.c vfio_device.c))
$(VM_STATIC): $(OUT)/libktask.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -static -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		-lm $(LDFLAGS)

.PHONY: vm-programs
vm-programs: $(VM_PROGRAMS) $(VM_ALSO) $(VM_STATIC) $(VM_DEVICE_TESTS) \
	$(VM_SCX_TESTS) $(SCX) $(OUT)/libktask-preload.so $(INNOCENT)

## check-vm: build ktask.ko for several kernels, test all of it in guests
.PHONY: check-vm
check-vm: day_unless_asked := all
check-vm:
	+@$(MAKE) --no-print-directory deps NEED='build check vm'
	+@$(MAKE) --no-print-directory deps NEED='$(NEED_OF_GUESTS)' || :
	+@$(SUBMAKE) vm-programs
	$(call run,$(RUN_vm))

## bench-vm: measure the kernel module in guests, beside padata's algorithm
.PHONY: bench-vm
bench-vm:
	+@$(MAKE) --no-print-directory deps NEED='build check vm'
	+@$(MAKE) --no-print-directory $(OUT)/bench/bench-claim $(OUT)/bench/bench-users \
		$(OUT)/tests/vm/ktaskd
	@KTASK_BUILD='$(abspath $(B))' KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		CC='$(CC)' ktask/bench/vm/run

# iommufd's mock device is in the kernels of `make kernel-6.12`: without them it is left out.
## bench-devices: time registering with devices, in guests (ROUNDS=9)
.PHONY: bench-devices
bench-devices:
	+@$(MAKE) --no-print-directory deps NEED='build check vm'
	+@$(SUBMAKE) vm-programs
	@for test in devices-hold-memory-until-it-is-taken-back \
			a-mock-device-reaches-what-is-registered; do \
		KTASK_BUILD='$(abspath $(B))' \
		KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		KTASK_TEST_KERNELS='$(abspath $(KERNEL_CACHE))' \
		KTASK_BENCH_ROUNDS='$(or $(ROUNDS),9)' CC='$(CC)' \
		perl tests/vm/$$test.t || exit 1; done

## check-vm-debug: the same in kernels that find errors (built once, 15 minutes)
.PHONY: check-vm-debug
check-vm-debug:
	+@$(MAKE) --no-print-directory deps NEED='build check vm debug'
	$(call run,$(wildcard tests/vm/debug/*.t))
