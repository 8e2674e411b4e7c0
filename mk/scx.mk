# SPDX-License-Identifier: GPL-2.0-only OR MIT
# scx_ktask: a scheduler in BPF and the command that loads it.  Made with the tools of
# umt's program (mk/umt.mk), and left out without them.

SCX_SRC := $(wildcard ktask/scx/*.c)
SCX_OBJ := $(call obj,$(filter-out %.bpf.c,$(SCX_SRC)))
SCX_GEN := $(OUT)/gen

$(SCX_GEN)/scx_ktask.bpf.o: ktask/scx/scx_ktask.bpf.c $(wildcard ktask/scx/*.h) mk/scx.mk
	$(make_directory)
	$(call say,BPF)
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(SCX_GEN)/scx_ktask.skel.h: $(SCX_GEN)/scx_ktask.bpf.o
	$(call say,GEN)
	$(Q)$(BPFTOOL) gen skeleton $< name scx_ktask_bpf >$@.new
	@mv $@.new $@

$(call obj,ktask/scx/scheduler.c): $(SCX_GEN)/scx_ktask.skel.h
$(call obj,ktask/scx/scheduler.c): KT_CFLAGS += -I$(SCX_GEN)

$(OUT)/scx_ktask: $(SCX_OBJ) $(call obj,$(LIB_UTIL))
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -lbpf $(LDFLAGS)

ifneq ($(HAVE_ebpf),)
SCX := $(OUT)/scx_ktask
endif
all: $(SCX)

# ---- compared with other schedulers ----

$(OUT)/bench/bench-scx: $(call obj,$(wildcard ktask/bench/scx/*.c))
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(LDFLAGS)

bench-programs: $(OUT)/bench/bench-scx

# scx_simple is built from the source that `make kernel-7` unpacks, if that is there.
## bench-scx: scx_ktask beside EEVDF and scx_simple, in guests (ROUNDS=3)
.PHONY: bench-scx
bench-scx:
	+@$(MAKE) --no-print-directory deps NEED='build check vm umt'
	-@scripts/deps $(SCHEDULER_PACKAGES)
	+@$(MAKE) --no-print-directory all $(OUT)/bench/bench-scx \
		$(OUT)/bench/bench-neighbour
	@KTASK_BUILD='$(abspath $(B))' CC='$(CC)' \
		KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
		ktask/bench/vm/schedulers '$(abspath $(KERNEL_CACHE))' \
		$(if $(filter command\ line,$(origin ROUNDS)),$(ROUNDS))
