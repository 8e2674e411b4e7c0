#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# DKMS builds, from what `make dkms` makes, the very code that the other guests
# test, byte for byte; a kernel loads and unloads it.  It installs VFIO's driver above the
# kernel's own.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
BEGIN { $ENV{KTASK_TEST_ONLY} //= 'cycles' }
use Guest;

@ARGV = ('one') unless @ARGV;
test_kernel('6.12', 1);
