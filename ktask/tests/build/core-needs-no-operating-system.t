#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# core/ and engine/ are compiled for each host.  Compiles them without any header
# but the compiler's own, on the poorest host that core/deps.h and engine/host.h
# allow, and looks at what is left to be supplied.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my %host_gives = map { $_ => 1 } qw(kt_now_ns kt_node_distance kt_iter_lock
	kt_iter_unlock);
my %compiler_emits = map { $_ => 1 } qw(memcpy memset memmove memcmp);
my $dir = scratch();
my @core = map { s{.*/(?=core/)}{}r } glob "$top/ktask/core/*.c";
my @engine = map { s{.*/(?=engine/)}{}r } glob "$top/ktask/engine/*.c";
ok(scalar @core, 'there is a core');
ok(scalar @engine, 'there is an engine');

# What the kernel is compiled with, as far as it bears on plain C.
my $strict = '-std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter '
	. '-Wundef -Wshadow -ffreestanding -nostdinc -nostdlib '
	. '-fno-strict-aliasing -mno-sse -mno-mmx -mno-80387 -Wvla '
	. '-Wframe-larger-than=2048 -Wdeclaration-after-statement';

# stddef.h and its like belong to the compiler, not to a system.
sub own_headers
{
	my ($compiler) = @_;
	my $clang = $compiler =~ /clang/;
	my (undef, $directory) = capture($compiler . ($clang ?
		' -print-resource-dir' : ' -print-file-name=include'));

	chomp $directory;
	return $clang ? "$directory/include" : $directory;
}

sub compile
{
	my ($compiler, $source, $object, $flags) = @_;
	my $headers = own_headers($compiler);

	return capture("cd $top/ktask && $compiler $strict $flags -isystem $headers "
		. "-Iinclude -I. -Itests/build/freestanding "
		. "-c -o $object $source");
}

sub undefined_of
{
	my ($object) = @_;
	my ($status, $said) = capture("nm -u $object");

	die $said if $status;
	return sort map { /U (\S+)/ ? $1 : () } split /\n/, $said;
}

sub object_of
{
	my ($source) = @_;

	return "$dir/" . ($source =~ s{/}{-}r) . '.o';
}

sub link_together
{
	my ($name, @sources) = @_;

	return capture("ld -r -o $dir/$name "
		. join(' ', map { object_of($_) } @sources));
}

my $machine = (capture("$cc -dumpmachine"))[1];
$strict =~ s/-mno-\S+ ?//g if $machine !~ /^(x86_64|i.86)/;

for my $compiler ($cc, 'clang') {
	SKIP: {
		skip "$compiler is not here", @core + @engine + 4
			unless have($compiler =~ /^(\S+)/);
		for my $name (@core, @engine) {
			my ($status, $said) = compile($compiler, $name,
						      object_of($name), '');
			is($status, 0, "$compiler: $name") or diag($said);
		}
		my ($status, $said) = link_together('core.o', @core);
		is($status, 0, "$compiler: core linked") or diag($said);
		($status, $said) = link_together('engine.o', @core, @engine);
		is($status, 0, "$compiler: engine linked") or diag($said);
		is_deeply([grep { !$host_gives{$_} && !$compiler_emits{$_} }
				undefined_of("$dir/engine.o")], ['kt_host'],
			  "$compiler: the engine wants one table besides");
		is_deeply([grep { !$host_gives{$_} && !$compiler_emits{$_} }
				undefined_of("$dir/core.o")], [],
			  "$compiler: wants only what core/deps.h lists");
	}
}

# Every host function is really asked for; else the contract is out of date.
my %wanted = map { $_ => 1 } undefined_of("$dir/core.o");
is_deeply([grep { !$wanted{$_} } sort keys %host_gives], [],
	  'core/deps.h lists nothing that is not used');

# No hidden state: two jobs, or two hosts, share nothing.
my (undef, $symbols) = capture("nm $dir/engine.o");
my @state = $symbols =~ /^\S+ [bBdDcC] (\S+)$/mg;
is_deeply(\@state, [], 'there is no writable data');

# And the flags above do bite.
spew("$dir/system.c", "#include <stdio.h>\n");
my ($status) = compile($cc, "$dir/system.c", "$dir/system.o", '');
isnt($status, 0, 'a system header would not be found');
spew("$dir/float.c", "double f(double);\ndouble f(double x)"
	. "\n{\n\treturn x * 2;\n}\n");
SKIP: {
	skip 'not x86', 1 if $machine !~ /^x86_64/;
	($status) = compile($cc, "$dir/float.c", "$dir/float.o", '');
	isnt($status, 0, 'floating point would not be compiled');
}

done_testing();
