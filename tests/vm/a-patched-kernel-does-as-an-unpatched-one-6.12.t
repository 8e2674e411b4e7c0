#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The clients of the series for Linux 6.12, where `make kernel-6.12` has built its
# kernels.  Arguments choose shapes: "one two vfio flush gigantic four vfio_two days days_vfio";
# from gigantic on they are for `make check-kernel`.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_series('6.12', @ARGV ? @ARGV : $ENV{KTASK_TEST_ALL_SHAPES}
	? qw(one two vfio flush gigantic four vfio_two days days_vfio) : qw(one two vfio flush));
