#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# On a machine without eBPF, MPI, static tracepoints, C++ and OpenMP, and with a
# compiler that knows no stack probes, everything else is built, and make tells at its
# end what it left out and how to add that.
# Where these are installed later they are built in, and nothing is told.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Missing;
use Test::More;

my $dir = scratch();
my $tools = compilers_without("$dir/tools", qw(sys/sdt.h mpi.h bpf/bpf.h omp.h));
my $old_cc = spew("$dir/old-cc", '#!/bin/sh
case "$*" in *-fstack-clash-protection*) echo no such option >&2; exit 1 ;; esac
' . "exec $tools/cc " . '"$@"
', 0755);
my $make = 'env -u MAKEFLAGS -u MFLAGS -u B ' . ($ENV{MAKE} || 'make')
	. " --no-print-directory -C $top -s -j2 OPT='-O0 -g0' B=$dir/build";
my $bare = "$make CC=$old_cc CXX=no-such-compiler TASKS_CLANG=$tools/clang";
my $block = qr/^Left out\. To add a part, run its command and then make again:\n/m;

my ($status, $said) = capture("$bare all");
is($status, 0, 'all is built') or diag($said);
like($said, qr{$block(?:  make deps NEED=\w+\t.+\n){3}The reasons are in .*\n\z},
     'what is left out is told in one block, at the end');
like($said, qr/^  make deps NEED=umt\t.*eBPF/m, 'eBPF');
like($said, qr/^  make deps NEED=apps\tMPI/m, 'MPI');
like($said, qr/^  make deps NEED=build\t.*tracepoints/m, 'tracepoints');

my $umt = "$dir/build/umt";
(undef, $said) = capture("$umt info");
like($said, qr/built without clang, bpftool or libbpf/, 'umt info says it');
($status, $said) = capture("$umt stat true");
isnt($status, 0, 'what needs eBPF fails');
unlike($said, qr/signal|Segmentation/, 'in order');

# What `make tests` builds besides, of which peers are a part.
($status, $said) = capture("$bare examples bench-programs $dir/build/bench/umt-cost "
			   . 'bench-tasks-programs');
is($status, 0, 'and examples and benchmarks') or diag($said);
ok(!-e "$dir/build/bench/$_", "no $_") for qw(bench-peers bench-tasks-libgomp);
($status, $said) = capture("$bare -n tests");
like($said, qr/make deps NEED=$_\t/, "$_ are left out of the tests")
	for qw(check tasks peers);

SKIP: {
	my (undef, $here) = capture("$make features");

	skip 'something is missing here too', 5
		if $here =~ /^(?:ebpf|mpi|sdt)\s+no$/m;
	($status, $said) = capture("$make all");
	is($status, 0, 'installed later: built again') or diag($said);
	unlike($said, qr/Left out/, 'nothing is left out, nothing told');
	(undef, $said) = capture("$umt info");
	unlike($said, qr/built without/, 'with eBPF');
	like((capture("nm -D $dir/build/heat"))[1], qr/MPI_Init/, 'with MPI');
	like((capture("readelf -n $dir/build/libktask.so"))[1], qr/job_start/,
	     'with tracepoints');
}

($status, $said) = capture("$make WITHOUT='ebpf mpi sdt' -n all");
unlike($said, qr/Left out/, 'what is left out on purpose is not told');

done_testing();
