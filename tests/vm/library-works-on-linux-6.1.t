#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Arguments choose shapes: "two four".  KTASK_TEST_PROGRAM=word runs only the
# programs with that word in their path.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Programs;

test_programs('6.1', qw(two umt));
