#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# `make deb` builds, on a Debian 12 with nothing but what Build-Depends brings,
# packages that lintian has nothing to say of, byte for byte the same ones each time.
# On another bare machine they can be installed, used, upgraded and taken away, and
# nothing is left; DKMS has built the module by then, which a guest loads by modprobe, and
# VFIO's driver, which is the kernel's own again at the end.
#
# What is done there is in build.sh and install.sh: HEAD's, as the packages are.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../vm", "$FindBin::Bin/../support";
use Guest qw(fetch_kernel fetch_source finish make_archive result run_guest skip_all);
use House;

use constant LIMIT => 2700;	# seconds for each machine
use constant SHOWN => 4000;	# bytes of what a step said

my $cache = $ENV{KTASK_TEST_BARE_CACHE} // "$build/bare";
my $vm_cache = $ENV{KTASK_TEST_VM_CACHE} //= "$build/vm";
my $kernel = fetch_kernel('6.12');
fetch_source('6.12');
my $with = scratch();
my %said;			# of a bare machine, by step
my $status;

chomp(my $version = qx("$top/scripts/version"));
chomp(my $release = slurp("$vm_cache/6.12/release"));

sub run_bare
{
	my ($options, $command) = @_;
	my $said;

	($status, $said) = capture("timeout @{[LIMIT]} $top/tests/bare/root "
		. "$options --with $with '$cache' '$command'");
	skip_all($said =~ s/\n\z//r =~ s/.*\n//sr) if $status == 77;
	%said = map { /^(\w+)\n(.*)/s } split /^== /m, "start\n$said";
}

# Passes if the next step was reached and what the step said is as wanted.  Only its
# end is shown.
sub step
{
	my ($step, $next, $claim, $wanted) = @_;
	my $text = $said{$step} // '';
	my $ok = defined $said{$next} && $text =~ ($wanted // qr//);

	result($ok, $claim);
	return if $ok;
	print "# status $status\n", map { "#  $_\n" } split /\n/, substr($text,
		length $text > SHOWN ? -(SHOWN) : 0);
}

run_bare('--user', 'tests/deb/build.sh');
step('start', 'build', 'a machine is made');
step('build', 'tools', 'make deb builds packages');
for my $package (qw(libktask0 libktask-dev ktask ktask-dkms ktask-vfio-dkms libumt0 libumt-dev umt
		    libktrt0 libktrt-dev ktrt ktask-doc)) {
	result(scalar(($said{build} // '') =~ m{/\Q$package\E_\Q$version\E_\w+\.deb$}m),
	       "$package is built");
}
step('lint', 'again', 'lintian has nothing to say', qr/\A\s*\z/);
step('again', 'newer', 'the same packages are built elsewhere', qr/^same$/m);
step('newer', 'end', 'a newer version is built');

run_bare('', "tests/deb/install.sh $release");
step('prepare', 'install', 'a machine is prepared');
step('install', 'use', 'the packages are installed');
step('use', 'shim', 'programs use the libraries, and have them inside',
     qr/(?:^sum 1 of (?:\Q$version\E(?:, )?){3}\n){2}/m);
step('shim', 'module', 'ktask run has its shim', qr/^ktask: run: took over nothing.*\(sh, \d+\)$/m);
step('module', 'guest', 'DKMS installs the module',
     qr{^ktask/\Q$version\E, \Q$release\E, \w+: installed$}m);
result(scalar(($said{module} // '') =~ m{^ktask-vfio/\Q$version\E, \Q$release\E, \w+: installed$}m
	&& $said{module} =~ m{^[\d.]+\+ktask\n/\S+/updates/dkms/vfio_iommu_type1\.ko}m),
       "and VFIO's driver above the kernel's own");
result(scalar(($said{module} // '') =~ /^a kernel is not refused$/m),
       'a kernel that keeps its own driver can be installed');
result(scalar(($said{module} // '') =~ /^ktask:x:\d+:$/m), 'its device is for a group');
result(scalar(($said{module} // '') =~ /^umtd is not started$/m),
       'umtd is for the administrator to start');
step('upgrade', 'same', 'the packages are upgraded',
     qr{\A(?=.*^ktask/\Q$version\E,\ \Q$release\E,\ \w+:\ installed$)
	 (?=.*^libktask0\ \Q$version\E\+1$)(?!.*\ \Q$version\E$)}msx);
step('same', 'remove', 'what was built before still runs', qr/^verified$/m);
step('remove', 'purge', 'the packages are removed');
step('purge', 'driver', 'and purged');
step('driver', 'left', "the kernel's own driver of VFIO is there again",
     qr{\A[\d.]+\n/\S+/kernel/drivers/vfio/vfio_iommu_type1\.ko});
step('left', 'end', 'nothing is left', qr/\Anothing\n\z/);

# ---- the module, in a guest ----

# What tests/vm/programs/init.c says of one program.
sub read_verdict
{
	my ($shape, $verdict) = @_;

	for (split /\r?\n/, $verdict) {
		result($1 eq 'ok', "$shape: $2") if /^(ok|not ok) - (.*)/;
		print "$_\n" if /^#/;
	}
	return scalar($verdict =~ /^end\r?$/m);
}

if (-d "$with/guest") {
	my $dir = scratch();
	my $archive = make_archive($dir, <<END);
cp -r $with/guest/. $dir/initrd
mkdir -p $dir/initrd/tests
cp tests/deb/modprobe.sh $dir/initrd/tests
$cc -O2 -Wall -Wextra -Werror -static -o $dir/initrd/init tests/vm/programs/*.c
END

	run_guest($dir, $kernel, $archive, 'one node', '', \&read_verdict,
		  '-smp', 2, '-m', 512);
} else {
	result(0, 'there is something for a guest to load');
}
finish();
