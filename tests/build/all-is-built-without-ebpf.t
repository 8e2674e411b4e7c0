#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What stands on libumt is linked where clang, bpftool and libbpf are missing, as
# on a machine that has only seen `make demo`, and says that; and is built again
# once they are there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $make = $ENV{MAKE} || 'make';
my $dir = scratch();
my @goals = map { "$dir/$_" } qw(umt libumt.so libktrt.so ktrt-info);
$make = "env -u MAKEFLAGS -u MFLAGS -u B $make -C $top -s -j2 B=$dir";
my ($status, $said) = capture("$make UMT_BPF=no @goals");

is($status, 0, 'all is linked') or diag($said);
like($said, qr/^umt: built without eBPF: run "make deps"$/m, 'and that is said');
($status, $said) = capture("$dir/umt info");
like($said, qr/built without clang, bpftool or libbpf/, 'also by umt info');
($status, $said) = capture("$dir/umt stat true");
isnt($status, 0, 'what needs it fails');
unlike($said, qr/signal|Segmentation/, 'in order');

SKIP: {
	skip 'no eBPF here either', 2 unless -e "$build/umtd";
	($status, $said) = capture("$make $dir/umt $dir/umtd");
	is($status, 0, 'built again') or diag($said);
	(undef, $said) = capture("$dir/umt info");
	unlike($said, qr/built without/, 'with it');
}

done_testing();
