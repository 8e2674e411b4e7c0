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
	+@status=0; for user in '' --user; do \
		$(BARE_ROOT) $$user '$(BARE_CACHE)' \
		"make check DAY='$(or $(day),all)' ONLY='$(ONLY)'" || status=1; \
		done; \
		$(MAKE) --no-print-directory check-deb || status=1; exit $$status
