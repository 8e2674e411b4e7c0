# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The tree on a machine where nothing is installed, which tests/bare/root makes.
# The root and its packages are fetched once and kept in BARE_CACHE (1.2 GB,
# which clones may share); remove it to get the newest.

BARE_CACHE ?= $(B)/bare

RUN_bare = $(wildcard tests/bare/*.t)
BARE_ROOT = MAKE='$(MAKE)' KTASK_TEST_VM_CACHE='$(abspath $(VM_CACHE))' \
	timeout 3h tests/bare/root

## check-bare: all of `make check` on a bare machine, as root, then with sudo; check-deb
.PHONY: check-bare
check-bare:
	+@$(MAKE) --no-print-directory deps NEED='bare vm'
	@tests/vm/fetch-all '$(VM_CACHE)'
	+@status=0; for goal in check-bare-as-root check-bare-as-user check-deb; do \
		$(MAKE) --no-print-directory $$goal || status=1; done; exit $$status

BARE_GOALS := check-bare-as-root check-bare-as-user
.PHONY: $(BARE_GOALS)
check-bare-as-user: BARE_USER := --user
$(BARE_GOALS):
	@$(BARE_ROOT) $(BARE_USER) '$(BARE_CACHE)' \
		"make check DAY='$(or $(day),all)' ONLY='$(ONLY)' EXCUSED=tests/bare/excused"
