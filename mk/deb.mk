# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Debian packages.  dpkg-buildpackage wants debian/ at the top of a tree and builds
# beside the sources: it has a copy, where debian/ is packaging/debian with a
# changelog made of CHANGELOG.md.  The version is that of the Makefile, times are that
# of the last commit, so that two machines make the same packages.

DEB := $(B)/deb
DEB_TREE := $(DEB)/ktask-$(VERSION)
DEB_SECONDS = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || \
	stat -c %Y CHANGELOG.md))

.PHONY: deb-tree
deb-tree:
	$(Q)rm -rf $(DEB)
	$(Q)mkdir -p $(DEB_TREE)
	$(Q){ git ls-files -z 2>/dev/null || \
		find . -name '.?*' -prune -o -path ./build -prune -o -type f -print0; } | \
		tar cf - --null --no-recursion --mtime=@$(DEB_SECONDS) -T - | \
		tar xf - -C $(DEB_TREE)
	$(Q)mv $(DEB_TREE)/packaging/debian $(DEB_TREE)/debian
	$(Q)rmdir $(DEB_TREE)/packaging
	$(Q)scripts/debian-changelog $(DEB_SECONDS) >$(DEB_TREE)/debian/changelog
	$(Q)chmod -R u+rwX,go=rX $(DEB_TREE)

# Words given to this make are not for the one that builds the packages, and what may
# be read does not depend on whose files these are.
DEB_BUILD = cd $(DEB_TREE) && env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES \
	sh -c 'umask 022 && dpkg-buildpackage -us -uc --jobs-try=auto'

## deb: Debian packages of everything, as build/deb/*.deb
.PHONY: deb
deb:
	+@$(MAKE) --no-print-directory deps NEED='build umt deb'
	+@$(MAKE) --no-print-directory deb-tree
	$(Q)($(DEB_BUILD)) >$(DEB)/log 2>&1 || { tail -n 40 $(DEB)/log >&2; exit 1; }
	@ls $(DEB)/*.deb

## check-deb: build the packages on a bare machine; install, upgrade and remove them on others
.PHONY: check-deb
check-deb:
	+@$(MAKE) --no-print-directory deps NEED='build bare vm'
	$(call run,$(wildcard tests/deb/*.t))
