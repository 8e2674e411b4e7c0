#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What `make install` installs is in one Debian package each, and nothing else is;
# versions, symbols and the changelog are those of the tree.  Builds no package: that
# is `make check-deb`.

use strict;
use warnings;
use File::Find;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $debian = "$top/packaging/debian";
my $root = scratch();
my $version = (capture("$top/scripts/version"))[1] =~ s/\n//r;

# ---- files ----

# As debian/rules gives them to make.
sub read_places
{
	my $rules = slurp("$debian/rules") =~ s/\$\(DEB_HOST_MULTIARCH\)/triplet/gr;

	return $rules =~ /\b((?:PREFIX|[A-Z]+DIR)=\S+)/g;
}

# Pattern => packages that have it, without what is taken from the tree.
sub read_lists
{
	my %packages;

	for my $path (glob "$debian/*.install") {
		my ($package) = $path =~ m{([^/]+)\.install$};
		for (split /\n/, slurp($path)) {
			push @{ $packages{$_} }, $package unless / /;
		}
	}
	return %packages;
}

# A pattern matches as dh_install would have it: a directory with all that is in it.
sub is_matched
{
	my ($path, $pattern) = @_;
	my $regex = join '[^/]*', map { quotemeta } split /\*/, $pattern, -1;

	return $path =~ m{^$regex(?:/|$)};
}

my ($status, $said) = capture("make -s -C $top B=$build DESTDIR=$root @{[read_places()]} "
			      . 'install');
is($status, 0, 'make install as the packages have it') or diag($said);
my (@files, %used, @wrong);
find({ no_chdir => 1, wanted => sub {
	push @files, s{^\Q$root\E/}{}r if -f || -l;
} }, $root);
my %lists = read_lists();

for my $path (sort @files) {
	my @patterns = grep { is_matched($path, $_) } keys %lists;
	my @packages = map { @{ $lists{$_} } } @patterns;

	$used{$_} = 1 for @patterns;
	push @wrong, "$path: " . (join(' ', sort @packages) || 'nothing')
		if @packages != 1;
}
is_deeply(\@wrong, [], 'each file is in one package');
# Put there by debian/rules itself.
$used{$_} = 1 for qw(usr/src/ktask-[0-9]* usr/src/ktask-vfio-*);
# Built where there are the tools for eBPF, which the packages want.
$used{$_} //= !-e "$build/umtd" for grep { m{umtd|sbin/scx_ktask} } keys %lists;
is_deeply([grep { !$used{$_} } sort keys %lists], [], 'no package wants what is not there');

my @control = slurp("$debian/control") =~ /^Package: (.*)/mg;
is_deeply([sort map { s{.*/|\.install$}{}gr } glob "$debian/*.install"], [sort @control],
	  'each package has files, and all files have a package');

# ---- symbols ----

for (['libktask', 'ktask/user/libktask.map'], ['libumt', 'umt/lib/libumt.map'],
     ['libktrt', 'ktrt/runtime/libktrt.map']) {
	my ($library, $map) = @$_;
	my @nodes = slurp("$top/$map") =~ /^(\w+_[\d.]+) \{/mg;
	my %since = slurp("$debian/${library}0.symbols") =~ /^ \(symver\)(\S+) (\S+)$/mg;

	is_deeply([sort keys %since], [sort @nodes], "versions of symbols of $library");
	is_deeply([grep { $_ !~ /_\Q@{[$since{$_} =~ s{\.0$}{}r]}\E$/ } keys %since], [],
		  'each came with the version of its name');
}

# ---- the changelog ----

my $changes = "$root/CHANGELOG.md";

sub changelog
{
	my ($text) = @_;

	spew($changes, $text);
	return capture("env -u DEBEMAIL DEBFULLNAME=Somebody $top/scripts/debian-changelog "
		       . "$changes 1700000000");
}

($status, $said) = changelog(<<'END');
# Changes

## Unreleased

### Added
- A call
  of `two` [lines](elsewhere.md).

### Fixed
- Nothing.

## 0.0.1 (2023-01-02)

- The first words.
END
is($status, 0, 'a changelog is made');
my $mail = (slurp("$debian/control") =~ /^Maintainer: .* (<.*>)$/m)[0];
is($said, <<"END", 'as Debian wants it');
ktask ($version) unstable; urgency=medium

  [ Added ]
  * A call of `two` lines.

  [ Fixed ]
  * Nothing.

 -- Somebody $mail  Tue, 14 Nov 2023 22:13:20 +0000

ktask (0.0.1) unstable; urgency=medium

  * The first words.

 -- Somebody $mail  Mon, 02 Jan 2023 12:00:00 +0000
END

for (["## Unreleased\n- A\n\n## $version (2023-01-02)\n- B\n", qr/\Q$version\E is there twice/],
     ["## Unreleased\n\n## 0.0.1 (2023-01-02)\n- B\n", qr/nothing is said of Unreleased/],
     ["## 0.0.1\n- A\n", qr/what release is '0\.0\.1'/],
     ["# Changes\n", qr/no release/]) {
	($status, $said) = changelog($_->[0]);
	isnt($status, 0, 'a wrong one is refused');
	like($said, $_->[1], 'and why');
}

($status, $said) = capture("$top/scripts/debian-changelog 1700000000");
is($status, 0, 'that of this tree is made');
is_deeply([grep { length > 80 || /[ \t]$/ } split /\n/, $said], [],
	  'with no line that is too long');
like($said, qr/^ktask \(\Q$version\E\) /, 'of the version of the tree');

done_testing();
