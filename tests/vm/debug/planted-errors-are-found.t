#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The kernels that find errors find those of tests/vm/module/planted.c: otherwise
# their silence about ktask.ko means nothing.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use Guest;

test_planted('debug-kasan',
	     'use of freed memory' => qr/KASAN: .*in planted_use_after_free/,
	     'a lock of helpers that their caller holds' =>
		 qr/possible circular locking/,
	     'a leak' => qr/^not ok \d+ - nothing-was-leaked/m);
test_planted('debug-kcsan',
	     'a data race' => qr/KCSAN: data-race in planted_race_step/);
Guest::finish();
