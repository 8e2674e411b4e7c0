#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# VFIO in a guest with an IOMMU: tests/vm/vfio.  Says what each way takes.

use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Guest;

test_vfio('6.12');
