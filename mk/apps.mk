# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The two applications that the runtime is measured with.  Several ranks need
# MPI; where it is missing they are built for one.

APPS := heat fwi
APP_COMM := ktrt/apps/common/comm_$(if $(HAVE_mpi),mpi,none).c
APP_COMMON := $(filter-out ktrt/apps/common/comm_%,$(wildcard ktrt/apps/common/*.c)) \
	$(APP_COMM)

# A sum that is contracted has other bits than the same sum elsewhere.
INC_ktrt/apps := -ffp-contract=off $(MPI_CFLAGS)

app_obj = $(call obj,$(wildcard ktrt/apps/$(1)/*.c) $(APP_COMMON))
$(foreach a,$(APPS),$(call app_obj,$a)): | $(call need,cc jansson xxhash)

## apps: heat diffusion and full-waveform inversion, by tasks
.PHONY: apps
apps: $(APPS:%=$(OUT)/%)

all: apps

$(OUT)/heat: $(call app_obj,heat)
$(OUT)/fwi: $(call app_obj,fwi)
$(APPS:%=$(OUT)/%): $(FEATURES)/mpi $(OUT)/libktrt.a $(OUT)/libumt.a $(OUT)/libktask.a
	$(call say,LD)
	$(Q)$(CC) $(KT_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(RT_LIBS) $(MPI_LIBS) -ljansson -lxxhash $(LDFLAGS)

# Stencils want vectors.
$(call obj,ktrt/apps/fwi/stencil.c): KT_CFLAGS += -O3

# The sanitizers look at them too.
c-tests: apps
