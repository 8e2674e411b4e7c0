#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The same as with -6.12, of Debian's newest kernel, which has another driver.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Series;

test_driver('7');
