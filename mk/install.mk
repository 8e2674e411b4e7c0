# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Installing under $(DESTDIR)$(PREFIX), and taking it away again.  Removes
# exactly the files that it installs; directories stay, except our own.

BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
RULESDIR ?= $(PREFIX)/lib/udev/rules.d
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
UNITDIR ?= $(PREFIX)/lib/systemd/system
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
COMPDIR ?= $(PREFIX)/share/bash-completion/completions
INSTALL ?= install
OBJCOPY ?= objcopy

HEADERS := $(wildcard $(PRODUCTS:%=%/include/ktask/*.h) \
	$(PRODUCTS:%=%/include/ktask/*.hpp))
MANPAGES := $(wildcard $(PRODUCTS:%=%/man/*.[1-8]))
COMPLETION := $(wildcard $(PRODUCTS:%=%/packaging/*.bash-completion))

# Where the installed command finds its parts when that is not ../lib/ktask:
# LIBDIR must then be given to `make` as well.
LAUNCHER_LIBDIR = -DKTASK_LIBDIR='"$(LIBDIR)/ktask"'
$(OBJ)/ktask/cli/cmd/find_shim.o: KT_CFLAGS += $(LAUNCHER_LIBDIR)

# The archive that others link: one object that shows only what is public, so
# that the names inside (pool, run, topo) stay free for the program.
$(OUT)/install/libktask.a: $(LIBOBJ)
	$(make_directory)
	$(call say,AR)
	$(Q)$(LD) -r -o $(@D)/libktask.o $(LIBOBJ)
	$(Q)$(OBJCOPY) --localize-hidden $(@D)/libktask.o
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(@D)/libktask.o

# Where each file goes, as SOURCE:TARGET; links are made apart.
installed_man = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))
INSTALL_DATA = \
	$(foreach h,$(HEADERS),$h:$(INCLUDEDIR)/ktask/$(notdir $h)) \
	ktask/include/uapi/linux/ktask.h:$(INCLUDEDIR)/linux/ktask.h \
	$(foreach m,$(MANPAGES),$m:$(call installed_man,$m)) \
	$(foreach c,$(COMPLETION),$c:$(COMPDIR)/$(basename $(notdir $c))) \
	ktask/packaging/60-ktask.rules:$(RULESDIR)/60-ktask.rules \
	ktask/packaging/ktask.sysusers:$(SYSUSERSDIR)/ktask.conf \
	$(if $(UMTD),umt/packaging/umtd.socket:$(UNITDIR)/umtd.socket) \
	umt/include/umt.h:$(INCLUDEDIR)/umt.h \
	$(OUT)/install/libktask.a:$(LIBDIR)/libktask.a \
	$(OUT)/install/libumt.a:$(LIBDIR)/libumt.a \
	$(OUT)/install/libktrt.a:$(LIBDIR)/libktrt.a
INSTALL_PROGRAM = \
	$(OUT)/libktask.so.$(VERSION):$(LIBDIR)/libktask.so.$(VERSION) \
	$(OUT)/libumt.so.$(VERSION):$(LIBDIR)/libumt.so.$(VERSION) \
	$(OUT)/libktrt.so.$(VERSION):$(LIBDIR)/libktrt.so.$(VERSION) \
	$(OUT)/ktrt-info:$(BINDIR)/ktrt-info \
	$(OUT)/libktask-preload.so:$(LIBDIR)/ktask/libktask-preload.so \
	$(OUT)/ktask:$(BINDIR)/ktask \
	$(OUT)/ktask-commands:$(LIBDIR)/ktask/ktask-commands \
	$(OUT)/ktaskd:$(SBINDIR)/ktaskd \
	$(if $(SCX),$(SCX):$(SBINDIR)/scx_ktask) \
	$(OUT)/umt:$(BINDIR)/umt \
	$(if $(UMTD),$(UMTD):$(SBINDIR)/umtd)
# What names another installed file is written where it is installed: a later install
# may have other places.
INSTALL_UNITS = ktaskd.service $(if $(UMTD),umtd.service)
# Links, each to the library of its name.
INSTALL_LINKS = $(foreach l,libktask libumt libktrt,\
	$(LIBDIR)/$l.so $(LIBDIR)/$l.so.$(SOVERSION))
PCFILES := $(notdir $(basename $(wildcard $(PRODUCTS:%=%/packaging/*.pc.in))))

# $(call install-files,MODE,PAIRS)
install-files = @set -e; for pair in $(2); do \
	to='$(DESTDIR)'$${pair\#*:}; \
	echo "  install $$to"; \
	$(INSTALL) -D -m $(1) "$${pair%%:*}" "$$to"; done

## install: PREFIX=/usr/local, DESTDIR= and LIBDIR= are honoured
.PHONY: install
install: all $(OUT)/install/libktask.a $(OUT)/install/libumt.a \
		$(OUT)/install/libktrt.a
	$(call install-files,644,$(INSTALL_DATA))
	$(call install-files,755,$(INSTALL_PROGRAM))
	@for link in $(INSTALL_LINKS); do name=$${link##*/}; \
		ln -sf "$${name%%.*}.so.$(VERSION)" "$(DESTDIR)$$link"; done
	@$(INSTALL) -d '$(DESTDIR)$(LIBDIR)/pkgconfig'
	@for pc in $(PCFILES); do sed -e 's|@VERSION@|$(VERSION)|' \
		-e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@UMT_LIBS@|$(UMT_STATIC)|' */packaging/"$$pc.in" \
		>"$(DESTDIR)$(LIBDIR)/pkgconfig/$$pc"; done
	@$(INSTALL) -d '$(DESTDIR)$(UNITDIR)'
	@for unit in $(INSTALL_UNITS); do sed -e 's|@SBINDIR@|$(SBINDIR)|' \
		*/packaging/"$$unit.in" >"$(DESTDIR)$(UNITDIR)/$$unit"; done
	@$(if $(DESTDIR),:,ldconfig || :)

## uninstall: with the same PREFIX, DESTDIR and LIBDIR
.PHONY: uninstall
uninstall:
	@for pair in $(INSTALL_DATA) $(INSTALL_PROGRAM); do \
		rm -f "$(DESTDIR)$${pair#*:}"; done
	@for link in $(INSTALL_LINKS) $(PCFILES:%=$(LIBDIR)/pkgconfig/%) \
		$(INSTALL_UNITS:%=$(UNITDIR)/%); do \
		rm -f "$(DESTDIR)$$link"; done
	@for dir in $(INCLUDEDIR)/ktask $(INCLUDEDIR)/linux $(LIBDIR)/ktask; do \
		rmdir "$(DESTDIR)$$dir" 2>/dev/null || :; done
