# SPDX-License-Identifier: GPL-2.0-only OR MIT
# heat's graph of tasks in other runtimes; ktrt/bench/apps/peers.py compares them.
# What cannot be built is left out there, with the reason.

PEER_OBJ := $(call obj,ktrt/bench/apps/peers/main.c $(patsubst %,ktrt/apps/heat/%.c,\
	checkpoint grid options) $(patsubst %,ktrt/apps/common/%.c,\
	app comm_none cost disk launcher_env))
PEER_LIBS = $(RT_STATIC) $(RT_LIBS) -ljansson -lxxhash
HEAT_PEERS_C := $(if $(HAVE_openmp),$(OUT)/bench/heat-libgomp) \
	$(if $(HAVE_libomp),$(OUT)/bench/heat-libomp) \
	$(if $(HAVE_tbb),$(OUT)/bench/heat-tbb)
HEAT_PEERS := $(HEAT_PEERS_C) $(OUT)/bench/heat-go $(OUT)/bench/heat-rust

$(PEER_OBJ): | $(call need,cc jansson xxhash)

$(OUT)/bench/heat-libgomp: ktrt/bench/apps/peers/openmp.c $(PEER_OBJ) $(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_CFLAGS) $(INC_ktrt) -fopenmp -o $@ $< $(PEER_OBJ) \
		$(PEER_LIBS) $(LDFLAGS)

$(OUT)/bench/heat-libomp: ktrt/bench/apps/peers/openmp.c $(PEER_OBJ) $(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(TASKS_CLANG) -std=gnu11 -O2 -g $(INC_ktrt) -fopenmp -o $@ $< \
		$(PEER_OBJ) $(PEER_LIBS) $(LDFLAGS)

$(OUT)/bench/heat-tbb: $(OBJ)/ktrt/bench/apps/peers/tbb.o $(PEER_OBJ) $(RT_STATIC)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CXX) $(KT_LDFLAGS) -o $@ $< $(PEER_OBJ) $(PEER_LIBS) -ltbb $(LDFLAGS)

# The sources are few: all of them, each time one changes.
$(OUT)/bench/heat-go $(OUT)/bench/heat-rust: $(OUT)/bench/heat-%: \
		$(wildcard ktrt/bench/apps/peers/go/* ktrt/bench/apps/peers/rust/*)
	$(make_directory)
	$(call say,$*)
	$(Q)ktrt/bench/apps/peers/build $* $(abspath $@)

.PHONY: heat-peers
heat-peers: $(HEAT_PEERS)

# Tests build what there is a compiler of, without a process to look for it.
in_path = $(firstword $(wildcard $(addsuffix /$(1),$(subst :, ,$(PATH)))))
tests: $(HEAT_PEERS_C) $(if $(call in_path,go),$(OUT)/bench/heat-go) \
	$(if $(call in_path,cargo),$(OUT)/bench/heat-rust)
