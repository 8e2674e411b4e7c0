# SPDX-License-Identifier: GPL-2.0-only OR MIT
# How the tree must read; the rules stand in scripts/style.

## style: check formatting, licences, lengths and who includes what
.PHONY: style format
style:
	@scripts/style

## format: let clang-format change the C files
format:
	@find $(filter-out build,$(patsubst %/,%,$(wildcard */))) \
		-name '*.[ch]' -exec clang-format -i {} +

## results: write doc/results.md anew from bench/data
.PHONY: results
results:
	@scripts/results

## lines: count the lines of ktask's C by feature, and those without comments and blanks
.PHONY: lines
lines:
	@scripts/lines
