#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The kernel is Debian's.  Its VFIO driver, patched as the package ktask-vfio-dkms
# does, maps, unmaps, fails and counts as before, and helpers of ktask.ko work in it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_driver('6.12');
