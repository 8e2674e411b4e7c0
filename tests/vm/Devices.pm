# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Tests of registering memory with devices, in guests that have these.
#
#   test_rdma()		an RDMA device of software, and a device behind an IOMMU,
#			on Debian's whole Linux 6.12 (tests/vm/fetch-rdma)
#   test_iommufd()	the mock device of iommufd, on the kernels that
#			`make kernel-6.12` has built: without the series, and with it
#
# Programs are those of tests/vm/devices, in C or for the shell; PID 1 and the rest
# are those of Programs.pm.  Whoever sets KTASK_BENCH_ROUNDS is told how long each way
# takes, as comments: no verdict depends on that, and nothing else is run.

package Devices;

use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(dirname);
use lib dirname(__FILE__), dirname(__FILE__) . '/../support';
use Guest qw(choose_machine finish have_done run_guest skip_all);
use House;
use Programs qw(pack_programs pass_on);
use Series qw(series_kernels);

our @EXPORT = qw(test_iommufd test_rdma);

my $cache = $ENV{KTASK_TEST_VM_CACHE} || "$build/vm";

# Words that the kernel does not know become PID 1's environment.
sub words
{
	my $rounds = $ENV{KTASK_BENCH_ROUNDS};

	return $rounds ? " KTASK_BENCH_ROUNDS=$rounds" : '';
}

# What runs in a guest: what is timed, or the other tests, among which what is timed runs
# once with little memory.
sub chosen
{
	my ($timed, @others) = @_;

	return grep { $_ =~ ($ENV{KTASK_TEST_PROGRAM} // qr/./) }
		$ENV{KTASK_BENCH_ROUNDS} ? @$timed : (@others, @$timed);
}

sub program
{
	my ($name) = @_;
	my $path = ($name =~ /\.sh$/ ? $top : $build) . "/tests/vm/devices/$name";

	-x $path or die "$path is not built\n";
	return $path;
}

# A program that knows nothing of ktask, linked with these libraries and sources.
sub build_unaware
{
	my ($dir, $name, @more) = @_;
	my $out = "$dir/$name";
	my ($status, $said) = capture("mkdir -p $dir && $cc -O2 -Wall -Wextra "
		. "-Werror -D_GNU_SOURCE -o $out "
		. "$top/tests/vm/devices/unaware/$name.c "
		. "@more -Wl,--allow-shlib-undefined");

	die "building $name: $said" if $status;
	return $out;
}

# What the programs say of time is said only to who asked for it.
sub read_all
{
	my ($dir, $wanted, $shape, $verdict) = @_;

	print map { "$_\n" } grep { /^# time: / } split /\r?\n/, $verdict
		if $ENV{KTASK_BENCH_ROUNDS};
	return pass_on($dir, $wanted, $shape, $verdict);
}

sub test_rdma
{
	my $dir = "$build/guests/rdma";
	my @names = chosen([qw(regions-are-timed type1-mappings-are-timed)],
			   qw(regions-are-registered-by-pieces
			      regions-end-with-their-process
			      shim-registers-regions-as-plain.sh
			      shim-maps-for-vfio-as-plain.sh
			      type1-mappings-are-made-by-pieces));
	my $first = 'a-device-of-rxe-is-made';

	choose_machine(1);
	skip_all('no xz') unless have('xz');
	have_done("fetch-rdma $cache") or die "no kernel for RDMA\n";
	my $root = "$cache/rdma/root";
	my @unaware = (build_unaware($dir, 'regions-cases',
				     glob "$root/usr/lib/*/libibverbs.so.1"),
		       build_unaware($dir, 'vfio-cases',
				     "$top/tests/vm/vfio_device.c"));
	my $initrd = pack_programs($dir, <<END, ['/bin/sed'], map { program($_) } @names);
cp @unaware $dir/initrd/bin
cp ${\program($first)} $dir/initrd/tests/0-$first
cp -r $cache/rdma/modules $dir/initrd/modules
strip --strip-debug $dir/initrd/modules/*.ko $dir/initrd/tests/0-*
cp -r $root/. $dir/initrd
END
	run_guest($dir, "$cache/rdma/vmlinuz", $initrd, 'RDMA',
		  'no_timer_check intel_iommu=on' . words(),
		  sub { read_all($dir, @names + 1, @_) },
		  '-machine', 'q35,kernel-irqchip=split', '-smp', 2, '-m', 1024,
		  '-device', 'intel-iommu', '-device', 'edu');
	finish();
}

sub test_iommufd
{
	my ($name) = @_;
	my $dir = "$build/guests/iommufd";
	my $at = series_kernels($name);
	my @names = chosen(['iommufd-mappings-are-timed'],
			   qw(iommufd-mappings-are-made-by-pieces
			      shim-maps-for-iommufd-as-plain.sh));

	choose_machine(1);
	my $unaware = build_unaware($dir, 'iommufd-cases');
	my $initrd = pack_programs($dir, <<END, ['/bin/sed'], map { program($_) } @names);
cp $unaware $dir/initrd/bin
END
	for my $kernel (qw(plain ktask)) {
		run_guest($dir, "$at/$kernel", $initrd, "iommufd, $kernel", words(),
			  sub { read_all($dir, scalar @names, @_) },
			  '-smp', 2, '-m', 768);
	}
	finish();
}

1;
