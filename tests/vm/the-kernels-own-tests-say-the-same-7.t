#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The tests of memory, VFIO, IOMMUs and groups that come with the kernel's source, on both
# kernels of the series for Debian's newest kernel: for `make check-kernel`.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_own('7.x');
