# SPDX-License-Identifier: GPL-2.0-only OR MIT
# libktrt: what the folder runtime/ makes, on top of libktask and libumt.

RT_OBJ := $(call obj,$(wildcard runtime/*.c))
INC_runtime := -Iinclude
# A task may leave by pthread_exit(), which unwinds through these.
$(RT_OBJ): KT_CFLAGS += -fexceptions
$(RT_OBJ): | $(B)/.headers

$(OUT)/libktrt.so.$(VERSION): $(RT_OBJ) runtime/libktrt.map \
		$(OUT)/libktask.so $(OUT)/libumt.so
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -shared -Wl,-soname,libktrt.so.$(SOVERSION) \
		-Wl,--version-script=runtime/libktrt.map -Wl,-z,nodelete \
		-Wl,-z,defs -o $@ $(RT_OBJ) -L$(OUT) -lumt -lktask $(LDFLAGS)

$(OUT)/libktrt.so: $(OUT)/libktrt.so.$(VERSION)
	$(Q)ln -sf libktrt.so.$(VERSION) $(OUT)/libktrt.so.$(SOVERSION)
	$(Q)ln -sf libktrt.so.$(VERSION) $@

$(OUT)/libktrt.a: $(RT_OBJ)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# What a static link of the runtime needs.
RT_STATIC = $(OUT)/libktrt.a $(OUT)/libumt.a $(OUT)/libktask.a
RT_LIBS = $(UMT_LIBS) -ldl -lm

all: $(OUT)/libktrt.so $(OUT)/libktrt.a

# Tests of the runtime: as tests/api, but with this library.
$(OUT)/tests/runtime/%: $(OBJ)/tests/runtime/%.o $(call support,runtime) \
		$(RT_STATIC)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) $(TESTWRAP) -o $@ $^ -lcmocka $(RT_LIBS) \
		$(LDFLAGS)
