#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What a day leaves out (support/Sample.pm): three days in a row cover
# everything in every place, each day has something, and a day can be had again.  6.12 and
# new kernels leave out nothing, no kernel what its version may change, and who chooses
# gets what is chosen.  Where a part of a guest failed, only that is repeated.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support", "$FindBin::Bin/../vm";
use File::Basename qw(basename);
use Guest ();
use House;
use Programs ();
use Sample;
use Test::More;

my @list = map { "part $_" } 1 .. 10;

# As the runner has it, which wants nothing but TAP on standard output.
sub on_day
{
	my ($day, $choose, @arguments) = @_;

	local $ENV{KTASK_TEST_DAY} = $day;
	delete $ENV{KTASK_TEST_DAY} unless defined $day;
	return $choose->(@arguments);
}

sub same
{
	my ($found, $wanted, $what) = @_;

	is_deeply([sort @$found], [sort @$wanted], $what);
}

for my $place (qw(6.1 7)) {
	my @days = map { [on_day($_, \&third_of_the_day, $place, 0, @list)] } 20_000 .. 20_002;

	same([map { @$_ } @days], \@list, "$place has each part once in three days");
	is((grep { @$_ < 3 || @$_ > 4 } @days), 0, 'and a third of them each day');
	same([on_day(20_003, \&third_of_the_day, $place, 0, @list)], $days[0],
	     'the fourth day is as the first');
	same([on_day('all', \&third_of_the_day, $place, 0, @list)], \@list, 'all days have all');
}
my $today = int(time / 86400);
my @now = on_day(undef, \&third_of_the_day, '7', 0, @list);
ok((grep { join(',', @now) eq join(',', on_day($_, \&third_of_the_day, '7', 0, @list)) }
    $today, $today + 1) > 0, 'without a number it is the day of the clock');
ok(!eval { on_day('never', \&third_of_the_day, '7', 0, @list); 1 }, 'a day is a number, or all');

# ---- which day make asks for ----

my $make = 'env -u MAKEFLAGS -u MFLAGS -u KTASK_TEST_DAY';

# What make would run; ONLY leaves out all tests, and nothing is built.
sub asked_for
{
	my ($variables, $goal, $options) = @_;
	my (undef, $said) = capture("$make $variables make -n -C $top B=$build ONLY=no-test "
		. "$options $goal");

	return ($said =~ /KTASK_TEST_DAY='([^']*)'/)[0] // $said;
}

is(asked_for('', 'check-style', 'DAY=20784'), '20784', 'make does the day of its command line');
is(asked_for('DAY=Mon', 'check-style', ''), '', 'and not a day of the environment');
is(asked_for('KTASK_TEST_DAY=7', 'check-style', ''), '7', 'but for KTASK_TEST_DAY');
is(asked_for('DAY=Mon KTASK_TEST_DAY=7', 'check-vm', ''), 'all', 'check-vm does all');
is(asked_for('', 'check-vm', 'DAY=7'), '7', 'unless the command line has a day');

# A stand-in for the bare machine, which says what it was asked for.
my $bare = scratch();
spew("$bare/Makefile", "BARE_CACHE := cache\n"
     . (slurp("$top/mk/check.mk") =~ /^(day = .*\n)/m)[0] . "include $top/mk/bare.mk\n"
     . "deps check-deb:\n");
spew("$bare/tests/vm/fetch-all", "#!/bin/sh\n", 0755);
spew("$bare/tests/bare/root", "#!/bin/sh\necho \"\$*\"\n", 0755);
for (['DAY=Mon', '', 'all'], ['', 'DAY=7', '7']) {
	my ($variables, $options, $day) = @$_;
	my (undef, $said) = capture("$make $variables make -s -C $bare $options check-bare");

	like($said, qr/^cache make check DAY='?$day'? /m, "check-bare does $day");
}

# ---- parts of what is tested beside the module ----

my @parts = Guest::all_parts();
cmp_ok(scalar @parts, '>', 10, 'PID 1 has parts');

sub parts
{
	my ($day, @arguments) = @_;

	return on_day($day, \&Guest::parts_of_the_day, @arguments);
}

for my $name (qw(6.12 debug-kasan 6.18)) {
	same([parts(1, $name, $_)], \@parts, "$name runs all on machine $_") for 0 .. 2;
}
for my $name (qw(6.1 7)) {
	for my $day (1 .. 3) {
		my @day = map { [parts($day, $name, $_)] } 0 .. 2;

		same([map { @$_ } @day], \@parts, "$name runs each part once on day $day");
		is((grep { @$_ < 4 } @day), 0, 'and a third of them on each machine');
	}
	for my $machine (0 .. 2) {
		my %seen = map { $_ => 1 } map { parts($_, $name, $machine) } 1 .. 3;

		same([keys %seen], \@parts, "and all on machine $machine within three days");
	}
}
is((grep { "@{[parts($_, '6.1', 0)]}" eq "@{[parts($_, '7', 0)]}" } 1 .. 3), 0,
   'two kernels run other parts there each day');

sub words
{
	my ($failed) = @_;

	return on_day(1, \&Guest::parts_to_run, '7', 0, $failed);
}

is(words(['groups: a claim', 'cycles: another: why', 'groups: one more']),
   'ktask.only=groups,cycles', 'of what failed the parts are repeated');
is(words(['groups: a claim', 'the guest comes to its end']), words(),
   'where the guest failed all of that day are');
{
	local $ENV{KTASK_TEST_ONLY} = 'groups';
	is(words(), '', 'parts that are chosen run everywhere');
	local @ARGV = ('one');
	delete $ENV{KTASK_TEST_ONLY};
	is(words(), '', 'on a machine that is chosen all run');
}

# ---- programs in guests ----

my @names = map { basename($_, '.c') } glob "$top/tests/vm/user/*.c";
my @every = map { /^([^#\s]\S*)/ ? $1 : () }
	split /\n/, slurp("$top/tests/vm/user/every-kernel");
push @names, map { basename($_) } glob "$top/tests/vm/user/*.sh";
push @names, map { m{^\w+/(\S+)} ? $1 : () } split /\n/, slurp("$top/tests/vm/user/also");
my %known = map { $_ => 1 } @names;
is_deeply([grep { !$known{$_} } @every], [], 'what runs on every kernel is there');

sub programs
{
	my ($day, @arguments) = @_;

	return on_day($day, \&Programs::programs_of_the_day, @arguments, @names);
}

same([programs(1, $_, 'two')], \@names, "$_ runs all programs") for qw(6.12 6.18);
same([programs(1, '7', 'umt')], \@names, '7 those of UMT');
for my $machine (['6.1', 'two'], ['6.1', 'umt'], ['7', 'four']) {
	my @days = map { [programs($_, @$machine)] } 1 .. 3;
	my %seen = map { $_ => 1 } map { @$_ } @days;

	same([keys %seen], \@names, "@$machine all within three days");
	for my $day (@days) {
		my %ran = map { $_ => 1 } @$day;

		is((grep { !$ran{$_} } @every), 0, 'and each day what the version changes');
		cmp_ok(scalar @$day, '<', @names, 'but not all else');
	}
}

done_testing();
