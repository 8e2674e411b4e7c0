#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Arguments choose shapes: "two four".  Races of the kernel's own code are listed
# and do not count (tests/vm/Complaints.pm).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Guest;

test_kernel('debug-kcsan');
