# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The kernel module's sources as DKMS wants them: a directory to put into /usr/src; and
# another that makes VFIO's type1 driver use the module, by the patches of the series.

DKMS := $(B)/dkms/ktask-$(VERSION)
DKMS_VFIO := $(B)/dkms/ktask-vfio-$(VERSION)
VFIO := ktask/kernel/series/vfio
# Of each series those that are for this driver.
VFIO_PATCHES = $(shell grep -l '^+++ b/drivers/vfio/vfio_iommu_type1.c' \
	ktask/kernel/series/*/*.patch)
# Which Linux a series is for: 7.3, as 7.x/source says; 6.12.
linux_of = $(or $(shell sed -n '/^\#/!s/ .*//p' $(1)source 2>/dev/null),$(notdir $(1:/=)))
VFIO_SERIES = $(sort $(foreach dir,$(sort $(dir $(VFIO_PATCHES))),$(call linux_of,$(dir))))
bar := |

## dkms: the module's sources for DKMS, in build/dkms
.PHONY: dkms dkms-vfio
dkms: ktask/packaging/dkms/dkms.conf.in dkms-vfio
	$(Q)rm -rf $(DKMS)
	$(Q)mkdir -p $(DKMS)
	$(Q)cp -r $(addprefix ktask/,Kbuild core engine kernel) $(DKMS)
	$(Q)rm -rf $(DKMS)/kernel/series
	$(Q)mkdir -p $(DKMS)/include
	$(Q)cp -r ktask/include/uapi $(DKMS)/include
	$(Q)cp ktask/packaging/dkms/keep-symbols $(DKMS)
	$(Q)sed 's|@VERSION@|$(VERSION)|' $< >$(DKMS)/dkms.conf

# <linux/ktask.h> is the header that other clients of the module include.
dkms-vfio:
	$(Q)rm -rf $(DKMS_VFIO)
	$(Q)mkdir -p $(DKMS_VFIO)/include/linux
	$(Q)cp $(VFIO)/Kbuild $(VFIO)/prepare $(DKMS_VFIO)
	$(Q)cp ktask/kernel/ktask_kernel.h $(DKMS_VFIO)/include/linux/ktask.h
	$(Q)$(foreach patch,$(VFIO_PATCHES),install -D -m 644 $(patch) \
		$(DKMS_VFIO)/patches/$(call linux_of,$(dir $(patch)))/$(notdir $(patch)) &&) :
	$(Q)sed 's/@VERSION@/$(VERSION)/; s/@SERIES@/$(subst .,\\.,$(subst $() ,$(bar),$(VFIO_SERIES)))/' \
		$(VFIO)/dkms.conf.in >$(DKMS_VFIO)/dkms.conf
