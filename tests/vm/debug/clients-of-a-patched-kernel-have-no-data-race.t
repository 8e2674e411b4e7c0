#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The clients of the series on a patched kernel with KCSAN, where `make check-kernel` has
# built it.  Races of the kernel's own code are listed and do not count
# (tests/vm/Complaints.pm).  Arguments choose shapes, as of tests/vm/a-patched-kernel-*.t.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Series;

test_debug('6.12', 'kcsan', @ARGV ? @ARGV : qw(one vfio));
