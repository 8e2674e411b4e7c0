#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Task runtimes side by side: each round runs every program once, in turn, so
# that what the machine does it does to all.  Prints medians, and how much of
# the best peer's time ktrt takes: by medians, and by the least of each, which
# other work on the machine cannot lower.
#
#   run.pl [--rounds N] [--only CASE,...] FOLDER
#
# FOLDER has the programs, bench-tasks-NAME; those that are missing are named.
#
# The threads of OpenMP spin after a parallel region, for up to 200 ms: only
# for "wake", which is about an idle runtime, they are told not to.  "futex" is
# no runtime but the floor of "wake".  libomp's threads do not sleep in a
# region's barrier whatever they are told (65 % of a CPU through the pauses of
# "wake-task"), so there it is shown but not counted as a peer.  "ktrtxx" is the
# runtime by its C++ face.
#
# Graphs ("stencil", "nearest", "fft"; 8 points, 500 steps) are made once and run 25
# times where a runtime can do that; OpenMP and "ktrt-dep" make their tasks each time
# from dependences.  "tbb" counts by hand, "tbb-flow" is its flow graph.  "metg-" is
# the task time at which half of the cores' time is the tasks'.  "wide-NODES-NS" is the
# briefest of 300 runs of nodes without edges.

use strict;
use warnings;
use Getopt::Long;

my ($rounds, $only) = (7, '');
GetOptions('rounds=i' => \$rounds, 'only=s' => \$only) && @ARGV == 1
	or die "usage: run.pl [--rounds N] [--only CASE,...] FOLDER\n";
my $folder = shift;
my @names = qw(ktrt ktrtxx ktrt-off ktrt-dep libgomp libomp tbb tbb-flow taskflow futex);
my @peers = grep { -x program($_) } @names;
chomp(my $cpus = `getconf _NPROCESSORS_ONLN`);
# Case, threads, what is counted.
my @cases = (
	['empty', 1, 'independent empty tasks, ns each'],
	['empty', $cpus, 'the same on all cores'],
	['makers', $cpus, 'the same with as many makers as cores, ns each'],
	['chain', 1, 'each task after the one before, ns each'],
	['fans', $cpus, 'one task, 16 readers, one task, ..., ns each'],
	['fib', 1, 'fork and join, ns a task'],
	['fib', $cpus, 'the same on all cores'],
	['work', $cpus, 'tasks of 2 us by one maker, ns each'],
	['wake', $cpus, 'from an idle runtime to the task, ns'],
	['wake-task', $cpus, 'the same by a task whose maker sleeps, everywhere, ns'],
	['loop', $cpus, 'a loop of 3 to 50 ns an index, the last quarter the longest, ns each'],
	['stencil', 1, 'a graph, each point after its neighbours, ns each'],
	['stencil', $cpus, 'the same on all cores'],
	['nearest', $cpus, 'the same with five neighbours, ns each'],
	['fft', $cpus, 'a graph, each point after itself and a partner, ns each'],
	['metg-stencil', $cpus, 'the time of tasks with half of all time theirs, ns'],
	['wide-1024-0', $cpus, '1024 independent empty nodes, ns each'],
	['wide-1024-1000', $cpus, 'the same of 1 us'],
	['block', $cpus, 'tasks that sleep 1 ms and compute 0.1 ms, ns each'],
);

# What comes after the dash is told by the environment.
sub program
{
	my ($name) = @_;

	return "$folder/bench-tasks-" . ($name =~ s/-(?:off|dep|flow)$//r);
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return @sorted ? $sorted[@sorted / 2] : undef;
}

sub measure
{
	my ($name, $case, $threads) = @_;
	local $ENV{KTRT_UMT} = $name eq 'ktrt-off' ? '0' : '1';
	local @ENV{'BENCH_TASKS_DEPEND', 'BENCH_TASKS_FLOW'} =
		map { $name =~ /-$_$/ ? 1 : undef } qw(dep flow);
	delete $ENV{$_} for grep { !defined $ENV{$_} }
		qw(BENCH_TASKS_DEPEND BENCH_TASKS_FLOW);
	local @ENV{$case =~ /^wake/ ? 'OMP_WAIT_POLICY' : ()} = ('passive');
	my $program = program($name);
	return () if $name eq 'futex' && $case !~ /^wake/;
	return () if $name =~ /-(?:dep|flow)$/ && $case !~ /^(?:metg-|stencil|nearest|fft|wide)/;
	my $said = `$program $case $threads 2>/dev/null`;

	return $? ? () : 0 + $said;
}

sub run_case
{
	my ($case, $threads) = @_;
	my %times;

	for (1 .. $rounds) {
		push @{$times{$_}}, measure($_, $case, $threads) for @peers;
	}
	return \%times;
}

# What ktrt takes of the best peer's time, by a figure of each one's rounds.
sub of_best
{
	my ($figure, $times, $case) = @_;
	my ($best) = sort { $a <=> $b } map { $figure->(@{$times->{$_} // []}) // () }
		grep { !/^(ktrt|futex)/ && !($case eq 'wake-task' && $_ eq 'libomp') } @peers;
	my $own = $figure->(@{$times->{ktrt} // []});

	return defined $best && defined $own ? sprintf('%.3f', $own / $best) : '-';
}

sub least
{
	return (sort { $a <=> $b } @_)[0];
}

sub shown
{
	return defined $_[0] ? sprintf('%.0f', $_[0]) : '-';
}

my $load = (split ' ', `cat /proc/loadavg`)[0] // '?';
print "$cpus CPUs, medians of $rounds rounds, load average $load before\n";
printf "%-20s" . ' %9s' x @peers . "  of_best  by_least\n", 'ns a task', @peers;
for (@cases) {
	my ($case, $threads, $what) = @$_;
	next if $only && !grep { $_ eq $case } split /,/, $only;
	my $times = run_case($case, $threads);

	printf "%-20s", "$case, $threads thread" . ($threads > 1 ? 's' : '');
	printf ' %9s', shown(median(@{$times->{$_} // []})) for @peers;
	printf "  %7s  %8s\n", of_best(\&median, $times, $case),
		of_best(\&least, $times, $case);
}
print "\n$_->[0]: $_->[2]\n" for grep {
	my $case = $_->[0];
	!$only || grep { $_ eq $case } split /,/, $only
} @cases;
my @missing = grep { !-x program($_) } @names;
print "not built here: @missing\n" if @missing;
