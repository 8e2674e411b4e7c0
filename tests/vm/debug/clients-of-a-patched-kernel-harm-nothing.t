#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The clients of the series on a patched kernel with KASAN, lockdep, kmemleak and
# allocations that fail, where `make check-kernel` has built it.  Arguments choose
# shapes, as of tests/vm/a-patched-kernel-*.t.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Series;

test_debug('6.12', 'kasan', @ARGV ? @ARGV : qw(one two vfio));
