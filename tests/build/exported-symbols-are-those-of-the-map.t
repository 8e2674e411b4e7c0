#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What the libraries show to a linker: each shared one exactly its map,
# each name with its version and declared in a public header; the installed
# static one the same names; the shim only calls that it takes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

# Name and version of every symbol of the map.
sub read_map
{
	my ($path) = @_;
	my $map = slurp("$top/$path") =~ s{/\*.*?\*/}{}gsr;
	my %names;

	while ($map =~ /(\w[\w.]*)\s*\{(.*?)\}/gs) {
		my ($version, $body) = ($1, $2);
		$body =~ s/local:.*//s;
		$names{$_} = $version for $body =~ /(\w+)\s*;/g;
	}
	return %names;
}

# As nm prints them: name => [type, version].
sub symbols_of
{
	my ($arguments) = @_;
	my ($status, $said) = capture("nm --defined-only $arguments");
	my %symbols;

	die $said if $status;
	for (split /\n/, $said) {
		/^\S+ (\w) ([^@\s]+)(?:@@?(\S+))?$/ or next;
		$symbols{$2} = [$1, $3 // ''];
	}
	return %symbols;
}

sub check_library
{
	my ($name, $path, $api, @headers) = @_;
	my %map = read_map($path);
	my %shared = symbols_of("-D $build/$name.so");
	my %versions = map { $_ => 1 } values %map;
	my @exported = grep { !$versions{$_} } sort keys %shared;

	ok(keys %map > 10, "the map of $name can be read");
	is_deeply(\@exported, [sort keys %map], "$name.so exports the map");
	is_deeply({ map { $_ => $shared{$_}[1] } @exported }, \%map,
		  'each with its version');
	is_deeply([grep { $shared{$_}[0] ne 'T' } @exported], [],
		  'only functions: data could not grow');

	my $headers = join '', map { slurp($_) } @headers;
	is_deeply([grep { $headers !~ /\b$_\(/ } sort keys %map], [],
		  'each is declared in a public header');
	my @declared = $headers =~ /^$api [^;(]*?\*?(\w+)\(/mg;
	is_deeply([grep { !$map{$_} } sort @declared], [],
		  'and each that is declared is exported');

	my ($status, $said) = capture("make -s -C $top B=$build "
		. "$build/install/$name.a");
	is($status, 0, 'the static library to install is made')
		or diag($said);
	my %static = symbols_of("-g $build/install/$name.a");
	is_deeply([sort keys %static], [sort keys %map],
		  'the static library takes no other name from its user');

	my (undef, $dynamic) = capture("readelf -dlW $build/$name.so");
	like($dynamic, qr/SONAME.*\[$name\.so\.\d+\]/, 'there is a SONAME');
	unlike($dynamic, qr/TEXTREL/, 'no relocation of code');
	unlike($dynamic, qr/GNU_STACK.*RWE/, 'no executable stack');
	like($dynamic, qr/NODELETE/,
	     'threads of ours cannot lose their code to dlclose');
}

check_library('libktask', 'ktask/user/libktask.map', 'KTASK_API',
	      glob "$top/{ktask,umt}/include/ktask/*.h");
check_library('libktrt', 'ktrt/runtime/libktrt.map', 'KTRT_API',
	      "$top/ktrt/include/ktask/runtime.h");
check_library('libumt', 'umt/lib/libumt.map', 'UMT_API',
	      "$top/umt/include/umt.h");

SKIP: {
	skip 'the shim is not built', 1 unless -e "$build/libktask-preload.so";
	my %shim = symbols_of("-D $build/libktask-preload.so");
	is_deeply([grep { /^_*(kt|ktask)_/ } sort keys %shim], [],
		  'the shim hides its copy of the library');
}

done_testing();
