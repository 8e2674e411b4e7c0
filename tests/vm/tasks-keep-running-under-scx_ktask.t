#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The scheduler scx_ktask in a guest with a stock kernel: tests/vm/scx.  Four CPUs, two
# to a cache.

use strict;
use warnings;
use File::Basename qw(basename);
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../support";
use Guest qw(fetch_kernel finish run_guest skip_all);
use House;
use Programs qw(pack_programs pass_on);

skip_all('scx_ktask is not built: no clang or libbpf') unless -x "$build/scx_ktask";
my $kernel = fetch_kernel('7');
my $dir = "$build/guests/scx";
my @tests = map { "$build/tests/vm/scx/$_" } map { basename($_, '.c') }
	grep { !/_/ } glob "$top/tests/vm/scx/*.c";
my $initrd = pack_programs($dir, '', ["$build/scx_ktask"], @tests);

run_guest($dir, $kernel, $initrd, 'scx', '', sub { pass_on($dir, scalar @tests, @_) },
	  '-smp', '4,sockets=2,cores=2', '-m', 512);
finish();
