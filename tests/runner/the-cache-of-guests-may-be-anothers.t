#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The cache of guests may be another user's, who alone may write there: what is in it is
# used, and what is not is said to be missing.  Before a machine without a network has
# guests, all of it is fetched.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support", "$FindBin::Bin/../vm";
use House;
use Test::More;
use Unpacked;

my $vm = "$top/tests/vm";

# ---- what may not be written ----

# Not even root opens a directory in place of a lock.
my $cache = scratch();
mkdir "$cache/$_" or die for qw(lock lock-dkms lock-qemu lock-rdma 6.12);
spew("$cache/7/release", "7.0\n");
for ("fetch $cache 6.12", "fetch-source $cache 7", "fetch-rdma $cache",
     "fetch-dkms $cache") {
	my ($status, $said) = capture("$vm/$_");

	is($status, 77, (split)[0] . ' cannot have it there');
	like($said, qr{: may not write \Q$cache\E/lock}, 'and says why');
}
spew("$cache/kernel", 'packed');
spew("$cache/kernel-unpacked", 'unpacked');
mkdir "$cache/kernel-unpacked.lock" or die;
is(unpacked_kernel("$cache/kernel"), "$cache/kernel-unpacked",
   'a kernel that somebody else has unpacked is used');

# ---- modules ----

# A build of modules is a directory that its sum names.
sub add_build
{
	my ($dir, $sum, $module) = @_;

	spew("$dir/$sum/ktask.ko", $module);
	(capture("cd $dir/$sum && sha256sum ./*.ko >sums"))[0] == 0 or die;
}

sub builds
{
	my ($dir) = @_;

	return join ' ', map { s{.*/(.*)/ktask.ko}{$1}r . '=' . slurp($_) }
		sort glob "$dir/*/ktask.ko";
}

my $lent = scratch() . '/lent';
my $kernel = "$cache/6.13-cloud";
spew("$kernel/release", "6.13-cloud\n");
symlink '6.13-cloud', "$cache/6.13" or die;
add_build("$kernel/modules", 'one', 'as root has built it');
is((capture("$top/tests/bare/modules lend $cache $lent"))[0], 0, 'modules are lent');
is(builds("$lent/6.13-cloud"), 'one=as root has built it', 'all that are kept');
ok(-d "$kernel/root/module", 'and can be built there');
ok(-d "$lent/7" && !-e "$lent/6.13", 'for each kernel, once');
add_build("$lent/6.13-cloud", 'one', 'anew');
add_build("$lent/6.13-cloud", 'two', 'whole');
add_build("$lent/6.13-cloud", 'three', 'whole');
spew("$lent/6.13-cloud/three/ktask.ko", 'half');
add_build("$lent/7", 'four', 'of another kernel');
is((capture("$top/tests/bare/modules take $cache $lent"))[0], 0, 'and taken back');
is(builds("$kernel/modules"), 'one=as root has built it two=whole',
   'with what was added and is whole');
is(builds("$cache/7/modules"), 'four=of another kernel', 'for each kernel');
is((capture("cd $kernel/modules/two && sha256sum -c sums"))[0], 0, 'as it was built');

# ---- fetching all ----

my $tree = scratch();
my @parts = qw(fetch-qemu fetch fetch-source fetch-rdma fetch-dkms);

# Stand-ins for what fetches a part, of which one fails like this.
sub fetch_all
{
	my ($failing, $status) = @_;

	unlink "$tree/log";
	spew("$tree/tests/vm/fetch-all", slurp("$vm/fetch-all"), 0755);
	spew("$tree/tests/vm/kernels", "# NAME SUITE\n6.1 some\n7 other base\n");
	for (@parts) {
		spew("$tree/tests/vm/$_", "#!/bin/sh\necho $_ \$* >>$tree/log\n"
		     . ($failing eq $_ ? "echo it is not there >&2\nexit $status\n"
				       : "echo /a/path\n"), 0755);
	}
	my ($code, $said) = capture("$tree/tests/vm/fetch-all $tree/cache");

	return ($code, $said, slurp("$tree/log"));
}

my ($status, $said, $log) = fetch_all('', 0);
is($status, 0, 'all is fetched');
is($log, join('', map { "$_\n" }
	"fetch-qemu $tree/cache", "fetch $tree/cache 6.1", "fetch $tree/cache 7",
	"fetch-source $tree/cache 6.12", "fetch-source $tree/cache 7",
	"fetch-rdma $tree/cache", "fetch-dkms $tree/cache"),
   'each kernel, sources of drivers, QEMU and DKMS');
is($said, '', 'and nothing is said');
for my $part (qw(fetch fetch-rdma fetch-dkms)) {
	($status, $said) = fetch_all($part, 77);
	is($status, 1, "$part cannot be done: a failure, and no reason to skip");
	like($said, qr/it is not there\n.*guests would be skipped: .*\n\z/,
	     'which says what it means');
}
($status, $said) = fetch_all('fetch-source', 77);
is($status, 0, 'a source that Debian has no more is no failure');
like($said, qr/it is not there/, 'but is said');

# ---- a bare machine ----

# check-bare of mk/bare.mk in a directory with stand-ins.
sub check_bare
{
	my ($fetched) = @_;
	my $dir = scratch();

	spew("$dir/Makefile", "B := build\nVM_CACHE := cache\ninclude $top/mk/bare.mk\n"
	     . "deps check-deb:\n\t\@echo \$@ \$(NEED) >>log\n");
	spew("$dir/tests/vm/fetch-all", "#!/bin/sh\necho fetch-all \$* >>log\n"
	     . "exit $fetched\n", 0755);
	spew("$dir/tests/bare/root", "#!/bin/sh\necho root \$# "
	     . "\${KTASK_TEST_VM_CACHE#$dir/} >>log\n", 0755);
	my ($status) = capture("env -u MAKEFLAGS -u MFLAGS make -s -C $dir check-bare");

	return ($status, slurp("$dir/log"));
}

($status, $log) = check_bare(0);
is($status, 0, 'check-bare passes');
like($log, qr/^fetch-all cache\nroot 2 cache\nroot 3 cache\ncheck-deb/m,
     'with what guests take, fetched before');
($status, $log) = check_bare(1);
isnt($status, 0, 'check-bare fails where that cannot be had');
unlike($log, qr/^(?:root|check-deb)/m, 'at once');

($status, $said) = capture("env KTASK_TEST_VM_CACHE=$cache/none $top/tests/bare/root "
			   . scratch() . ' true');
is($status, 2, 'a bare machine whose guests have no cache is none');
like($said, qr{no \Q$cache\E/none}, 'and says so');

done_testing();
