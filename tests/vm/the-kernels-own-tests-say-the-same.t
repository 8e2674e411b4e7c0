#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The tests of memory, IOMMUs and groups that come with the kernel's source, on both
# kernels of the series for Linux 6.12: for `make check-kernel`.  tests/vm/own-tests lists
# them.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_own('6.12');
