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
