# SPDX-License-Identifier: GPL-2.0-only OR MIT
# One entry for everything; `make help` lists the goals.  The three products ktask,
# umt and ktrt have a directory each.  Sources are found by directory: a new file needs no
# edit here.  Everything is made under build/.

VERSION := 0.1.0
SOVERSION := 0
B := build

# Variants are built side by side: plain in build/, others in build/<variant>/.
# `make VARIANT=asan` is what the tests use; see mk/check.mk.
VARIANT ?= plain
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan := -fsanitize=thread
OUT := $(B)$(if $(filter-out plain,$(VARIANT)),/$(VARIANT))
OBJ := $(OUT)/obj

CC ?= cc
# Sanitizers find the same in code that was compiled in half the time.
OPT ?= $(if $(SAN_$(VARIANT)),-O1 -g1,-O2 -g)
WARN := -Wall -Wextra -Werror=implicit -Wno-unused-parameter \
	-Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wundef

include mk/features.mk
# A rule in there comes first.
.DEFAULT_GOAL := all

# A frame larger than a page is touched page by page, so that a caller with too
# little stack meets the page that guards it.  Nothing is added to small frames.
PROBES := $(if $(HAVE_stackprobes),-fstack-clash-protection)
KT_CFLAGS := -std=gnu11 $(OPT) $(WARN) $(SAN_$(VARIANT)) -fno-strict-aliasing \
	$(PROBES) -pthread -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fno-omit-frame-pointer -D_GNU_SOURCE -DKTASK_VERSION='"$(VERSION)"'
KT_LDFLAGS := $(SAN_$(VARIANT)) -pthread

CORE := $(wildcard ktask/core/*.c)
ENGINE := $(wildcard ktask/engine/*.c)
LIB := $(wildcard ktask/user/*.c ktask/user/*/*.c)
OPS := $(wildcard ktask/ops/*.c)
CLI := $(wildcard ktask/cli/*.c ktask/cli/*/*.c)
LAUNCHER := ktask/launch/launcher.c
# What each start of a program runs comes first, so that it lies on a few pages.
PRELOAD_START := $(patsubst %,ktask/preload/%.c,policy/settings \
	policy/shim_config policy/seccomp_filter calls/next_functions \
	calls/guarded_calls calls/run_operation exit/exit exit/exec exit/spawn \
	exit/report ahead/ahead_watcher ahead/allocation_calls \
	ahead/grown_areas ahead/new_memory)
PRELOAD := $(PRELOAD_START) $(filter-out $(PRELOAD_START), \
	$(wildcard ktask/preload/*.c ktask/preload/*/*.c))
# When and where memory is made ahead of its touch, in a process or beside it.
AHEAD := $(wildcard ktask/ahead/*.c)
DAEMON := $(wildcard ktask/daemon/*.c)
# What all of user space shares.  The library has what it needs of that, hidden;
# the command and the shim have the rest as well.
LIB_UTIL := ktask/util/file.c ktask/util/idle_cpus.c
UTIL := $(filter-out $(LIB_UTIL),$(wildcard ktask/util/*.c))

# One short line per step; `make V=1` prints whole commands.  Neither that line nor a
# directory that exists costs a process: a build of all has 2,100 steps.
Q := $(if $(V),,@)
say = $(if $(V),,$(info $(empty)  $(1) $(if $(filter CC LD AR,$(1)),  , )$@))
make_directory = $(if $(wildcard $(@D)/.),,@mkdir -p $(@D))

obj = $(patsubst %.c,$(OBJ)/%.o,$(1))
LIBSRC := $(LIB_UTIL) $(CORE) $(ENGINE) $(LIB) $(OPS)
LIBOBJ := $(call obj,$(LIBSRC))

PRODUCTS := ktask umt ktrt

# Sources name headers from the directory of their product: "core/job.h".  Of the other
# products they see what is installed, and all see common/.  Who may include what is
# checked by `make style`.
INSTALLED := -Iktask/include -Iumt/include -Iktrt/include
INC_ktask := -Iktask/include -Iktask -I.
INC_umt := -Iktask/include -Iumt/include -Iumt -I.
INC_ktrt := $(INSTALLED) -Iktrt -I.
INC_host := -Iktask/user/port $(if $(HAVE_sdt),-DKTASK_SDT)
INC_ktask/core := $(INC_host)
INC_ktask/engine := $(INC_host)
INC_ktask/user := $(INC_host)
# An exception of a program's callback takes back what was done: ktask/ops/register.c.
INC_ktask/ops := -fexceptions
INC_ktask/examples := -Iktask/include/uapi
# A test may see the inside of what it tests.
INC_tests := $(INSTALLED) -Iktask -Iumt -Iktrt -I. -Iktask/user/port -Itests/support
part = $(word $(1),$(subst /, ,$(2)))
INC_of = $(if $(filter tests,$(call part,1,$(1)) $(call part,2,$(1))),$(INC_tests),\
	$(INC_$(call part,1,$(1))) $(INC_$(call part,1,$(1))/$(call part,2,$(1))))

.PHONY: all
all: $(OUT)/libktask.so $(OUT)/libktask.a $(OUT)/ktask.pc \
	$(OUT)/libktask-preload.so $(OUT)/ktask $(OUT)/ktaskd
	$(if $(filter tests,$(MAKECMDGOALS)),,$(call tell-left-out,$(OPTIONAL_all)))

$(LIBOBJ): $(FEATURES)/sdt
# A first `make` on a bare machine says what to do instead of a page of errors.
$(LIBOBJ) $(call obj,$(PRELOAD) $(AHEAD) $(DAEMON) $(UTIL)): | $(call need,cc)
$(call obj,$(CLI)): | $(call need,cc hwloc jansson)

$(OBJ)/%.o: %.c Makefile
	$(make_directory)
	$(call say,CC)
	$(Q)$(CC) $(KT_CFLAGS) $(call INC_of,$<) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/libktask.so.$(VERSION): $(LIBOBJ) ktask/user/libktask.map
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -Wl,-soname,libktask.so.$(SOVERSION) \
		-Wl,--version-script=ktask/user/libktask.map -Wl,-z,nodelete \
		-Wl,-z,defs -o $@ $(LIBOBJ) -ldl $(LDFLAGS)

$(OUT)/libktask.so: $(OUT)/libktask.so.$(VERSION)
	$(Q)ln -sf libktask.so.$(VERSION) $(OUT)/libktask.so.$(SOVERSION)
	$(Q)ln -sf libktask.so.$(VERSION) $@

$(OUT)/libktask.a: $(LIBOBJ)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(OUT)/ktask.pc: ktask/packaging/ktask.pc.in Makefile
	$(make_directory)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' -e 's|@PREFIX@|$(PREFIX)|' \
		-e 's|@LIBDIR@|$(LIBDIR)|' $< >$@

# Two mappings less than usual, which each start of a program would pay for.  Sorting puts
# the large data behind the rest (ktask/util/large_static.h).  Without RELRO all that the
# loader writes is on one page (preload/policy/shim_config.c); what it would protect is the
# lesser part of that, as functions are looked up when they are first called.
$(OUT)/libktask-preload.so: $(call obj,$(PRELOAD) $(AHEAD) $(UTIL)) \
		$(OUT)/libktask.a
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -Wl,-z,nodelete -Wl,--exclude-libs,ALL \
		-Wl,-z,defs -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,-O1 \
		-Wl,--sort-section=name \
		-o $@ $(call obj,$(PRELOAD) $(AHEAD) $(UTIL)) \
		$(OUT)/libktask.a -ldl $(LDFLAGS)

$(OUT)/ktask-commands: $(call obj,$(CLI) $(UTIL)) $(OUT)/libktask.a \
		$(OUT)/libktask-preload.so
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $(call obj,$(CLI) $(UTIL)) \
		$(OUT)/libktask.a -ldl -lhwloc -ljansson -lm $(LDFLAGS)

# Without a C library, of which nothing may be called: neither by sanitizers nor by what
# protects stacks, nor for a loop that copies (from -O2 on).
LAUNCHER_CFLAGS := -O1 -ffreestanding -fno-builtin -fno-stack-protector \
	-fno-sanitize=all -fno-lto -fno-pie -U_FORTIFY_SOURCE

$(call obj,$(LAUNCHER)): $(LAUNCHER) Makefile
	$(make_directory)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -g $(WARN) -D_GNU_SOURCE $(call INC_of,$<) $(LAUNCHER_LIBDIR) \
		$(CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP -c -o $@ $<

# Where it cannot be built `ktask` is the whole command.
ifneq ($(HAVE_launcher),)
$(OUT)/ktask: $(call obj,$(LAUNCHER)) $(OUT)/ktask-commands
	$(call say,LD)
	$(Q)$(CC) -static -nostdlib -Wl,-z,noseparate-code -o $@ $< $(LDFLAGS) -no-pie
else
$(OUT)/ktask: $(OUT)/ktask-commands
	$(call say,LD)
	$(Q)cp $< $@
endif
$(OUT)/ktask: $(FEATURES)/launcher

$(OUT)/ktaskd: $(call obj,$(DAEMON) $(AHEAD) $(UTIL)) $(OUT)/libktask.a
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $^ -ldl -lm $(LDFLAGS)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib

include $(filter-out mk/features.mk,$(wildcard mk/*.mk))

.PHONY: clean
clean:
	rm -rf $(B)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
