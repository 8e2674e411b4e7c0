#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The rules of scripts/style, each one test, for this tree.

exec "$(dirname "$0")/../../scripts/style"
