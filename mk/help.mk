# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Every goal for people has a line "## goal: what it does" where it is made.

## all: build the library, the command and the shim (what `make` does)
## clean: remove everything that was built
## help: this list
.PHONY: help
help:
	@sed -n 's/^## \([^:]*\): /\1\t/p' $(sort $(MAKEFILE_LIST)) | \
		awk -F'\t' '{ printf "  %-44s %s\n", $$1, $$2 }'
