#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Modules for guests are compiled once for a cache: another clone gets the same bytes,
# and anything that goes into them compiles them anew.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dir = scratch();
my $runs = "$dir/runs";
my ($nr, $made) = (0, 0);

# In place of the kernel's make: a module is all of its directory, and what the directory
# says is said.
spew("$dir/bin/unshare", <<END, 0755);
#!/bin/sh
# Without it, that is only asked whether one may.
case " \$* " in *' --kill-child '*) ;; *) exit 0 ;; esac
while [ "\$1" != sh ] || [ "\$2" = -c ]; do shift; done
src=\$2
for word; do
	case \$word in M=/module/*) directory=\${word#M=/module/} ;; esac
done
echo "\$directory" >>$runs
cat "\$src/\$directory/say" 2>/dev/null
find "\$src/\$directory" -type f ! -name '*.ko' | sort | xargs cat \\
	>"\$src/\$directory/\${directory##*/}.ko"
! grep -q Error "\$src/\$directory/say" 2>/dev/null
END

# A clone with all that is compiled, and a directory that is no part of it.
sub make_clone
{
	my ($clone) = @_;

	spew("$clone/tests/vm/build", slurp("$top/tests/vm/build"), 0755);
	spew("$clone/ktask/$_/one.c", "$_\n")
		for qw(core engine kernel include/uapi);
	spew("$clone/ktask/Kbuild", "flags\n");
	spew("$clone/client/client.c", "client\n");
	spew("$clone/other/driver/driver.c", "driver\n");
	spew("$clone/other/driver/.flags", "hidden\n");
	return $clone;
}

# A kernel with headers and a compiler, as it was fetched.
sub make_kernel
{
	my ($cache) = @_;

	spew("$cache/k/release", "1.2\n");
	spew("$cache/k/root/usr/bin/cc", 'a compiler');
	spew("$cache/k/root/usr/src/linux-headers-1.2/.config", 'CONFIG');
	return $cache;
}

# Builds in a new place.  Return: the modules, and how many were compiled for them.
sub build_in
{
	my ($clone, $cache) = @_;
	my $out = "$dir/out" . $nr++;

	spew($runs, '');
	my ($status, $said) = capture("PATH=$dir/bin:\$PATH $clone/tests/vm/build "
		. "$cache k $out client $clone/other/driver");
	my $compiled = () = slurp($runs) =~ /\n/g;

	return ($status, $compiled, $said, map { [s{.*/}{}r, slurp($_)] }
		sort glob "$out/k/*.ko");
}

my $one = make_clone("$dir/one");
my $cache = make_kernel("$dir/cache");
my @first = build_in($one, $cache);

is($first[0], 0, 'modules are built') or diag($first[2]);
is($first[1], 3, 'each directory is compiled');
is(scalar @first, 6, 'and has a module');

my @again = build_in(make_clone("$dir/two"), $cache);
is($again[1], 0, 'nothing is compiled for another clone');
is_deeply([@again[3 .. 5]], [@first[3 .. 5]], 'which has the same modules');

my %changes = (
	'a source' => sub { spew("$_[0]/ktask/core/one.c", "other\n") },
	'the name of a source' => sub {
		rename("$_[0]/ktask/core/one.c", "$_[0]/ktask/core/two.c");
	},
	'a public header' => sub { spew("$_[0]/ktask/include/uapi/one.c", "x\n") },
	'the flags in Kbuild' => sub { spew("$_[0]/ktask/Kbuild", "-O3\n") },
	'a directory of the tree' => sub { spew("$_[0]/client/client.c", "x\n") },
	'another directory' => sub { spew("$_[0]/other/driver/driver.c", "x\n") },
	'a hidden file of it' => sub { spew("$_[0]/other/driver/.flags", "x\n") },
	'the script that builds' => sub {
		spew("$_[0]/tests/vm/build",
		     slurp("$top/tests/vm/build") =~ s/-g0/-g1/gr, 0755);
	},
	'the compiler' => sub { spew("$_[1]/k/root/usr/bin/cc", 'newer, longer') },
	'the time of the compiler' => sub {
		utime(1, 1, "$_[1]/k/root/usr/bin/cc");
	},
	'a header of the kernel' => sub {
		spew("$_[1]/k/root/usr/src/linux-headers-1.2/.config", 'CONFIGS');
	},
	'where a link leads' => sub { symlink('cc', "$_[1]/k/root/usr/bin/c99") },
	'the release' => sub { spew("$_[1]/k/release", "1.3\n") },
);

for my $what (sort keys %changes) {
	my $clone = make_clone("$dir/clone" . $nr);

	$made++;
	capture("cp -a $cache $dir/cache$made");
	$changes{$what}->($clone, "$dir/cache$made");
	is((build_in($clone, "$dir/cache$made"))[1], 3, "$what is of consequence");
}

# ---- what lies there ----

my ($kept) = glob "$cache/k/modules/*/client.ko";
spew($kept, '');
my @mended = build_in($one, $cache);
is($mended[1], 3, 'what is damaged is compiled again');
is_deeply([@mended[3 .. 5]], [@first[3 .. 5]], 'and is right');
is((build_in($one, $cache))[1], 0, 'and lies there again');

for my $said ('cc: warning: odd', 'Error 1') {
	my $clone = make_clone("$dir/bad" . $nr);

	spew("$clone/client/say", "$said\n");
	for my $time ('fails', 'fails each time') {
		my ($status, $compiled) = build_in($clone, $cache);

		ok($status && $compiled, "'$said' $time");
	}
}

for my $i (1 .. 20) {
	spew("$one/client/client.c", $i);
	build_in($one, $cache);
}
my @kept = glob "$cache/k/modules/*/sums";
cmp_ok(scalar @kept, '<', 20, 'what is old makes room');
is((build_in($one, $cache))[1], 0, 'and what is new stays');

# As another user's: nothing may be kept, and nothing fails.
my $full = make_kernel("$dir/full");
spew("$full/k/modules", 'no directory');
my @unkept = build_in($one, $full);
is("@unkept[0, 1]", '0 3', 'modules that cannot be kept are built');

# ---- a kernel that was built here ----

make_kernel("$dir/moved");
mkdir("$dir/moved/k/tree");
my ($status, undef, $said) = build_in($one, "$dir/moved");
is($status, 77, 'a kernel whose source is elsewhere is skipped');
like($said, qr/source of this kernel is elsewhere/, 'which is said');

done_testing();
