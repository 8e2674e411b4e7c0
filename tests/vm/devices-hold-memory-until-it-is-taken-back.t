#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Memory regions of an RDMA device, in a guest: tests/vm/devices.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Devices;

test_rdma();
