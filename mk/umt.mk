# SPDX-License-Identifier: GPL-2.0-only OR MIT
# libumt: what the directory umt/ makes.  The program for the kernel needs clang,
# bpftool and libbpf; without them the library is built with its other
# backends, and says so.

UMT_LIB := $(wildcard umt/lib/*.c)
UMT_GEN := $(B)/gen
ifeq ($(HAVE_ebpf),)
UMT_LIB := $(filter-out $(addprefix umt/lib/,bpf.c bpf_source.c \
	broker_client.c bpf_program.c load_error.c),$(UMT_LIB))
UMT_LIBS :=
else
UMT_LIBS := -lbpf
# What a static link needs besides.
UMT_STATIC := -lbpf -lelf -lz
INC_umt += -I$(UMT_GEN) -DUMT_HAVE_BPF
endif
UMT_OBJ := $(call obj,$(UMT_LIB))

# The program is for the kernel, whatever architecture the compiler is on.
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(MACHINE)))
BPF_CFLAGS := -target bpf -g -O2 -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) \
	-fdebug-compilation-dir=. -D__$(MACHINE)__ -Wall -Wextra -Wno-unused-parameter \
	-Iumt/include -I/usr/include/$(MACHINE)-linux-gnu

$(UMT_GEN)/umt.bpf.o: $(wildcard umt/ebpf/*.[ch]) umt/include/umt.h mk/umt.mk
	$(make_directory)
	$(call say,BPF)
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -c -o $@ umt/ebpf/umt.bpf.c

$(UMT_GEN)/umt.skel.h: $(UMT_GEN)/umt.bpf.o
	$(call say,GEN)
	$(Q)$(BPFTOOL) gen skeleton $< name umt_bpf >$@.new
	@mv $@.new $@

$(call obj,umt/lib/bpf_program.c): $(UMT_GEN)/umt.skel.h

$(OUT)/libumt.so.$(VERSION): $(UMT_OBJ) umt/lib/libumt.map
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -Wl,-soname,libumt.so.$(SOVERSION) \
		-Wl,--version-script=umt/lib/libumt.map -Wl,-z,nodelete \
		-Wl,-z,defs -o $@ $(UMT_OBJ) $(UMT_LIBS) $(LDFLAGS)

$(OUT)/libumt.so: $(OUT)/libumt.so.$(VERSION)
	$(Q)ln -sf libumt.so.$(VERSION) $(OUT)/libumt.so.$(SOVERSION)
	$(Q)ln -sf libumt.so.$(VERSION) $@

$(OUT)/libumt.a: $(UMT_OBJ)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# All of it once more when eBPF can be had at last.
$(UMT_OBJ): $(FEATURES)/ebpf | $(call need,cc)

$(OUT)/install/libumt.a: $(UMT_OBJ)
	$(make_directory)
	$(call say,AR)
	$(Q)$(LD) -r -o $(@D)/libumt.o $(UMT_OBJ)
	$(Q)$(OBJCOPY) --localize-hidden $(@D)/libumt.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(@D)/libumt.o

UMT_CMD := $(call obj,$(wildcard umt/cmd/*.c))
$(UMT_CMD): | $(call need,cc)

$(OUT)/umt: $(UMT_CMD) $(OUT)/libumt.a
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(UMT_LIBS) $(LDFLAGS)

# The broker is nothing without the program.
ifneq ($(HAVE_ebpf),)
UMTD := $(OUT)/umtd
endif
UMTD_OBJ := $(call obj,$(wildcard umt/umtd/*.c))
$(UMTD_OBJ): | $(call need,cc)

$(OUT)/umtd: $(UMTD_OBJ) $(OUT)/libumt.a
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(UMT_LIBS) $(LDFLAGS)

all: $(OUT)/libumt.so $(OUT)/libumt.a $(OUT)/umt $(UMTD)

# Tests of libumt: as ktask/tests/api, but with this library.
$(OUT)/tests/umt/%: $(OBJ)/$(DIRECTORY_umt)/%.o $(call support,umt) $(OUT)/libumt.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(TEST_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka $(UMT_LIBS) \
		-ldl -lm $(LDFLAGS)

# Both libraries in one program.
$(OUT)/tests/umt/blocked-threads-of-jobs-are-told-of: $(OUT)/libktask.a

UMT_COST := $(call obj,umt/bench/cost.c umt/bench/latency.c)
$(UMT_COST): $(FEATURES)/ebpf

$(OUT)/bench/umt-cost: $(UMT_COST) \
		$(OUT)/libumt.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(UMT_LIBS) -lm $(LDFLAGS)

$(OUT)/bench/blocked: $(call obj,umt/bench/blocked.c) $(OUT)/libktask.a \
		$(OUT)/libumt.a
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ $(UMT_LIBS) -ldl $(LDFLAGS)

tests: $(OUT)/bench/umt-cost $(OUT)/bench/blocked

## bench-umt-cost: what UMT adds to a context switch, how fast it tells (BENCH=part)
.PHONY: bench-umt-cost
bench-umt-cost:
	+@$(MAKE) --no-print-directory deps NEED='build umt'
	+@$(MAKE) --no-print-directory $(OUT)/bench/umt-cost
	$(OUT)/bench/umt-cost $(BENCH)

## bench-blocked: many files by direct I/O, beside fixed numbers of threads (BENCH=options)
.PHONY: bench-blocked
bench-blocked:
	+@$(MAKE) --no-print-directory deps NEED=build
	+@$(MAKE) --no-print-directory $(OUT)/bench/blocked
	$(OUT)/bench/blocked $(BENCH)
