#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The memory tests of the Linux Test Project on both kernels of the series for Linux 6.12,
# where LTP_SOURCE is its source, built or not:
#
#   git clone https://github.com/linux-test-project/ltp
#   make check-kernel LTP_SOURCE=$PWD/ltp
#
# A test that takes more than a minute there is cut off, on both.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_ltp('6.12');
