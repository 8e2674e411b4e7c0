#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The clients of the series for Debian's newest kernel, where `make kernel-7` has built
# its kernels.  Arguments choose shapes, as of -6.12; all are for `make check-kernel`.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_series('7.x', @ARGV ? @ARGV : $ENV{KTASK_TEST_ALL_SHAPES}
	? qw(one two vfio flush gigantic four vfio_two device days
	   days_vfio) : qw(one vfio));
