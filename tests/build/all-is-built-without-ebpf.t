#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What stands on libumt is linked where clang, bpftool and libbpf are missing, as
# on a machine that has only seen `make demo`, and says that.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $make = $ENV{MAKE} || 'make';
my $dir = scratch();
my @goals = map { "$dir/$_" } qw(umt libumt.so libktrt.so ktrt-info);
my ($status, $said) = capture("env -u MAKEFLAGS -u MFLAGS -u B $make -C $top "
	. "-s -j2 UMT_BPF=no B=$dir @goals");

is($status, 0, 'all is linked') or diag($said);
like($said, qr/^umt: built without eBPF: run "make deps"$/m, 'and that is said');
($status, $said) = capture("$dir/umt info");
like($said, qr/built without clang, bpftool or libbpf/, 'also by umt info');
($status, $said) = capture("$dir/umt stat true");
isnt($status, 0, 'what needs it fails');
unlike($said, qr/signal|Segmentation/, 'in order');

done_testing();
