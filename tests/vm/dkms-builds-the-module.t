#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The module that DKMS builds from what `make dkms` makes passes the tests.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
# Other guests have tested the same sources.
BEGIN { $ENV{KTASK_TEST_ONLY} //= 'module,device,cycles' }
use Guest;

@ARGV = ('one') unless @ARGV;
test_kernel('6.12', 1);
