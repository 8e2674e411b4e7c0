#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# mk/check.mk tells by words in its source whether a unit test makes threads.  This test
# tells it by what the objects refer to, of headers and of functions elsewhere too: no unit
# test that makes threads is left out under the thread sanitizer.
#
# Behaves badly with threads that are made by a pointer to a function or by a system call
# without a name: it does not see these.

use strict;
use warnings;
use File::Basename qw(basename);
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my @primitives = qw(pthread_create thrd_create clone clone3);

# Of each object or member of an archive: what it refers to, and what it defines.
sub symbols_of
{
	my (%refers, %defines);

	for (map { split /\n/, (capture("nm -A -g -P $_"))[1] } @_) {
		my ($object, $symbol, $type) = /^(.*): (\S+) ([A-Za-z])\b/ or next;

		push @{ ($type =~ /[Uw]/ ? \%refers : \%defines)->{$object} }, $symbol;
	}
	return (\%refers, \%defines);
}

# makers_among(OBJECT...): the functions that make threads, in these or below them.  An
# object of which one function does so is one of which all do.
sub makers_among
{
	my ($refers, $defines) = symbols_of(@_);
	my %makers = map { $_ => 1 } @primitives;
	my $nr;

	do {
		$nr = keys %makers;
		for my $object (keys %$refers) {
			next unless grep { $makers{$_} } @{ $refers->{$object} };
			$makers{$_} = 1 for @{ $defines->{$object} // [] };
		}
	} while (keys %makers > $nr);
	return \%makers;
}

sub makes_threads
{
	my ($object, $makers) = @_;
	my ($refers) = symbols_of($object);

	return scalar grep { $makers->{$_} } map { @$_ } values %$refers;
}

# ---- made-up tests ----

my $dir = scratch();

sub compiled
{
	my ($name, $source) = @_;

	spew("$dir/$name.c", $source);
	my ($status, $said) = capture("$cc -O0 -I$dir -c -o $dir/$name.o $dir/$name.c");
	$status == 0 or die $said;
	return "$dir/$name.o";
}

spew("$dir/by_header.h", <<'END');
#include <pthread.h>
static inline void run_beside(void *(*func)(void *))
{
	pthread_t thread;
	pthread_create(&thread, 0, func, 0);
}
END
my $by_header = compiled('by_header_test', "#include \"by_header.h\"\n"
	. "int main(void) { run_beside(0); }\n");
my $support = compiled('support', "#include \"by_header.h\"\n"
	. "void run_two(void) { run_beside(0); run_beside(0); }\n");
my $above = compiled('above', "void run_two(void);\nvoid run_four(void) { run_two(); run_two(); }\n");
my $by_support = compiled('by_support', "void run_four(void);\nint main(void) { run_four(); }\n");
my $alone = compiled('alone', "#include <stdio.h>\nint main(void) { puts(\"alone\"); }\n");
my $makers = makers_among($support, $above);

ok(makes_threads($by_header, $makers), 'threads that a header makes are found');
ok(makes_threads($by_support, $makers), 'and those that a function of a function does');
ok(!makes_threads($alone, $makers), 'but none where there is none');

# ---- the unit tests ----

my $unit = 'ktask/tests/unit';
my ($status, $said) = capture("env -u MAKEFLAGS -u MFLAGS make -s -C $top B=$build "
	. 'unit-without-tsan');
my %without = map { basename($_, '.c') => 1 } split ' ', $said;
is($status, 0, 'make says which run under no thread sanitizer') or diag($said);
cmp_ok(scalar keys %without, '>', 10, 'which are many');

$makers = makers_among(glob("$build/obj/tests/support/*.o $build/obj/$unit/support/*.o"),
	"$build/tests/unit.a");
my %made = map { $_ => makes_threads("$build/obj/$unit/$_.o", $makers) }
	map { basename($_, '.c') } glob "$top/$unit/*.c";
is_deeply([grep { $made{$_} && $without{$_} } sort keys %made], [],
	'those that make threads are not among them');
ok($made{'caps-are-never-exceeded'}, 'one that makes threads is seen to');
ok($made{'undo-covers-failures-of-several-workers'}, 'and one whose threads take turns');
is_deeply([grep { !-e "$build/obj/$unit/$_.o" } sort keys %made], [], 'all were looked into');

done_testing();
