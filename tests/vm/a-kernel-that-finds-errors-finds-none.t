#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The module on two nodes of a kernel with KASAN and lockdep, where that was built
# already; make check-vm-debug builds it and runs everything.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
BEGIN { $ENV{KTASK_TEST_ONLY} //= 'module' }
use Guest;

skip_unbuilt('debug-kasan');
@ARGV = ('two') unless @ARGV;
test_kernel('debug-kasan');
