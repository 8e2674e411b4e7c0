# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The kernel module's sources as DKMS wants them: a directory to put into /usr/src.

DKMS := $(B)/dkms/ktask-$(VERSION)

## dkms: the module's sources for DKMS, in build/dkms
.PHONY: dkms
dkms: ktask/packaging/dkms/dkms.conf.in
	$(Q)rm -rf $(DKMS)
	$(Q)mkdir -p $(DKMS)
	$(Q)cp -r $(addprefix ktask/,Kbuild core engine kernel) $(DKMS)
	$(Q)rm -rf $(DKMS)/kernel/series
	$(Q)mkdir -p $(DKMS)/include
	$(Q)cp -r ktask/include/uapi $(DKMS)/include
	$(Q)cp ktask/packaging/dkms/keep-symbols $(DKMS)
	$(Q)sed 's|@VERSION@|$(VERSION)|' $< >$(DKMS)/dkms.conf
