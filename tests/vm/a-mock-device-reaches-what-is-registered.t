#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Memory that is mapped for a device by iommufd, in a guest: tests/vm/devices.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Devices;

test_iommufd('6.12');
