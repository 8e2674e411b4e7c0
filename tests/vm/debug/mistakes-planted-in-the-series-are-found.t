#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Mistakes that are planted in the series for Linux 6.12 are found by its tests:
# otherwise their silence means nothing.  For `make check-kernel`; arguments choose
# mistakes by their numbers (tests/vm/Planted.pm).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Series;

test_mistakes('6.12', @ARGV);
