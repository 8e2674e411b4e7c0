#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Task runtimes side by side: each round runs every program once, in turn, so
# that what the machine does it does to all.  Prints medians, and how much of
# the best peer's time ktrt takes: by medians, and by the least of each, which
# other work on the machine cannot lower.
#
#   run.pl [--rounds N] [--busy N] [--only CASE,...] [--output FILE] DIRECTORY
#
# DIRECTORY has the programs, bench-tasks-NAME; those that are missing are named, with
# the reason where bench-tasks-NAME.why says one.  A CASE may be a set: programs,
# graphs, blocking, metg, or of that a width: metg-2, metg-8, metg-64.  FILE is for
# all times, as JSON.  --busy: beside so many processes that compute all the time.  Then
# times of programs and graphs are means of a second, and "metg-" is of the time that as many
# threads get that only compute.
#
# The threads of OpenMP spin after a parallel region, for up to 200 ms: only
# for "wake", which is about an idle runtime, they are told not to.  "futex" is
# no runtime but the floor of "wake".  libomp's threads do not sleep in a
# region's barrier whatever they are told (65 % of a CPU through the pauses of
# "wake-task"), so there it is shown but not counted as a peer.  "ktrtxx" is the
# runtime by its C++ face.
#
# "start" is of a process each, and of ktrt as programs start it; all else begins when
# UMT's counts are there.  "idle" is of two processes on one CPU; beside "futex" a thread
# sleeps and nothing else.
#
# "outside": in "ktrt" and "ktrtxx" an attached thread makes the tasks, besides as many
# workers as cores; peers count the thread that makes them.
#
# Programs (../programs) fork and join and compare their results.  "alone" is no runtime
# but one thread that does them without tasks: the least that any takes with one thread.
#
# Graphs ("stencil", "nearest", "fft"; 8 points, 500 steps) are made once and run 25
# times where a runtime can do that; OpenMP and "ktrt-dep" make their tasks each time
# from dependences.  A worker asks "ktrt" for the run of a graph, and in "ktrt-attached" an
# attached thread.  "tbb" counts by hand, "tbb-flow" is its flow graph.  "metg-" is
# the task time at which half of the cores' time is the tasks', of 4,000 tasks; "least" is
# no runtime but the least that any does that makes them from dependences; the
# set has each pattern with 2, 8 and 64 points, and with tasks of that time on average
# ("uneven": 0 to 2 of it).  "wide-NODES-NS" is the briefest of 300 runs of nodes
# without edges.
#
# "nested": 50 sweeps of 32 cells, one cell after the other, so that only cells of
# different sweeps can be done at a time.  With "-weak" a sweep's task does not wait for
# the sweep before, but its cells do; of the peers none has that (OmpSs-2 does).
#
# Blocking cases: each of 400 tasks sleeps 1 ms, reads 64 KiB directly, or faults in
# 16 pages of a mapped file of 32 MiB, or these by turns, and computes for 0.1 ms.
# The sleep stands for any system call that blocks a thread, so Go and Tokio sleep by one,
# too, and not by their own timers; Tokio's blocking threads sleep, read and fault.  The
# file is made in DIRECTORY.  The last two run in a control group with 24 MiB of memory
# where one can be made; either way the file is not in memory at first.

use strict;
use warnings;
use Cwd qw(abs_path);
use Getopt::Long;
use JSON::PP;
use POSIX ();

my ($rounds, $busy, $only, $output) = (7, 0, '');
GetOptions('rounds=i' => \$rounds, 'busy=i' => \$busy, 'only=s' => \$only,
	'output=s' => \$output) && @ARGV == 1
	or die "usage: run.pl [--rounds N] [--busy N] [--only CASE,...] [--output FILE] DIRECTORY\n";
my $directory = shift;
my @names = qw(ktrt ktrtxx ktrt-off ktrt-dep ktrt-attached libgomp libomp tbb tbb-flow
	       taskflow go tokio futex alone least);
my @peers = grep { -x program($_) } @names;
my $patterns = qr/stencil|nearest|fft|all_to_all|trivial/;
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
	['outside-0', $cpus, 'independent empty tasks by a thread outside of the runtime, ns each'],
	['outside-2000', $cpus, 'the same of 2 us'],
	['wake', $cpus, 'from an idle runtime to the task, ns'],
	['wake-task', $cpus, 'the same by a task whose maker sleeps, everywhere, ns'],
	['start', $cpus, 'from before the runtime is started to its first task, ns'],
	['idle', $cpus, 'a byte to and fro between two processes beside an idle runtime, ns'],
	['loop', $cpus, 'a loop of 3 to 50 ns an index, the last quarter the longest, ns each'],
	['stencil', 1, 'a graph, each point after its neighbours, ns each'],
	['stencil', $cpus, 'the same on all cores'],
	['nearest', $cpus, 'the same with five neighbours, ns each'],
	['fft', $cpus, 'a graph, each point after itself and a partner, ns each'],
	['metg-stencil', $cpus, 'the time of tasks with half of all time theirs, ns'],
	['wide-8-0', $cpus, '8 independent empty nodes, ns each'],
	['wide-1024-0', $cpus, '1024 independent empty nodes, ns each'],
	['wide-1024-1000', $cpus, 'the same of 1 us'],
	['nested', $cpus, 'sweeps, a task each, of cells of 10 us, a task each, ns a cell'],
	['nested-weak', $cpus, 'the same with weak dependences of the sweeps'],
	['block', $cpus, 'tasks that sleep 1 ms and compute 0.1 ms, ns each'],
	['block-read', $cpus, 'the same with direct reads of 64 KiB'],
	['block-fault', $cpus, 'the same with 16 page faults, in little memory'],
	['block-mixed', $cpus, 'the same with these by turns'],
);
my %programs = (
	nqueens => '12 queens, ns a task',
	sort => 'a mergesort of 2,000,000 numbers, ns each',
	sparselu => 'factors of a sparse matrix, ns a block',
	uts => 'an unbalanced tree of 320,000 nodes, ns each',
);
for my $case (sort keys %programs) {
	push @cases, [$case, $_, $programs{$case}] for 1, $cpus;
}
for my $width (2, 8, 64) {
	for my $pattern (qw(stencil nearest fft all_to_all trivial)) {
		push @cases, map { ["metg-$pattern-$width$_", $cpus] } '', '-uneven';
	}
}

# Is the case one that was asked for?  The many of METG are left out else.
sub is_chosen
{
	my ($case) = @_;
	my ($metg, $width) = $case =~ /^(metg)-$patterns-(\d+)/;
	my %is_of = ($case => 1,
		programs => scalar($case eq 'fib' || $programs{$case}),
		graphs => scalar($case =~ /^$patterns/),
		blocking => scalar($case =~ /^block/),
		metg => $metg,
		'metg-' . ($width // '') => $width);

	return $only ? scalar grep { $is_of{$_} } split /,/, $only : !$metg;
}

# What comes after the dash is told by the environment.
sub program
{
	my ($name) = @_;

	return "$directory/bench-tasks-" . ($name =~ s/-(?:off|dep|flow|attached)$//r);
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return @sorted ? $sorted[@sorted / 2] : undef;
}

# A file that is larger than the memory of the group.
sub make_file
{
	my $path = "$directory/bench-tasks.data";

	open my $file, '>:raw', $path or die "$path: $!\n";
	print $file pack('N*', map { $_ * 2654435769 % 4294967296 } 1 .. 262144) for 1 .. 32;
	close $file or die "$path: $!\n";
	system 'sync', $path;
	$ENV{BENCH_TASKS_FILE} = abs_path($path);
	return $path;
}

# The control group, made when it is wanted first; undef: not yet asked, '': none.
my $group;

# Of this process, in the hierarchy that has memory: version 1 or 2.
sub make_group
{
	my %of = map { /^\d+:([^:]*):(.*)/ ? ($1 => $2) : () } `cat /proc/self/cgroup`;
	my ($root, $limit) = defined $of{memory}
		? ("/sys/fs/cgroup/memory$of{memory}", 'memory.limit_in_bytes')
		: ('/sys/fs/cgroup' . ($of{''} // ''), 'memory.max');
	my $path = "$root/bench-tasks-$$";

	return '' unless -d $root && mkdir $path;
	if (open my $file, '>', "$path/$limit") {
		return $path if print($file 24 << 20) && close $file;
	}
	rmdir $path;
	return '';
}

# What a command begins with that shall run in it; nothing where there is none.
sub small_group
{
	$group //= make_group();
	return $group && "echo \$\$ 2>/dev/null >$group/cgroup.procs || exit 99;";
}

# Programs that have a case and no time: why.
my %failures;

sub note_failure
{
	my ($what, $status) = @_;

	my $exit = $status >> 8;
	# The shell says by its own status what ended the program.
	my $signal = $exit > 128 ? $exit - 128 : $status & 127;

	# That program has not this case.
	return if $exit == 2;
	$failures{$what} = $signal ? "signal $signal"
		: $exit == 3 ? 'no figure: others use the machine' : "exit $exit";
}

sub measure
{
	my ($name, $case, $threads) = @_;
	local $ENV{KTRT_UMT} = $name eq 'ktrt-off' ? '0' : '1';
	local @ENV{'BENCH_TASKS_DEPEND', 'BENCH_TASKS_FLOW', 'BENCH_TASKS_ATTACHED'} =
		map { $name =~ /-$_$/ ? 1 : undef } qw(dep flow attached);
	delete $ENV{$_} for grep { !defined $ENV{$_} }
		qw(BENCH_TASKS_DEPEND BENCH_TASKS_FLOW BENCH_TASKS_ATTACHED);
	local @ENV{$case eq 'start' ? 'BENCH_TASKS_SOON' : ()} = (1);
	local @ENV{$case =~ /^(?:wake|idle)/ ? 'OMP_WAIT_POLICY' : ()} = ('passive');
	my $program = program($name);
	return () if $name eq 'futex' && $case !~ /^(?:wake|idle)/;
	return () if $name eq 'alone' && ($threads > 1 || !$programs{$case});
	return () if $name eq 'least' && $case !~ /^metg-/;
	return () if $name =~ /^(?:go|tokio)$/ && $case !~ /^block/;
	return () if $name =~ /-(?:dep|flow|attached)$/ && $case !~ /^(?:metg-|$patterns|wide)/;
	my $within = $case =~ /^block-(?:fault|mixed)$/ ? small_group() : '';
	my $said = `$within $program $case $threads 2>/dev/null`;

	if ($within && $? >> 8 == 99) {
		rmdir $group;
		$group = '';
		return measure($name, $case, $threads);
	}
	note_failure("$name $case", $?) if $?;
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
		grep { !/^(?:ktrt|futex|alone|least)/ && !($case eq 'wake-task' && $_ eq 'libomp') } @peers;
	my $own = $figure->(@{$times->{ktrt} // []});

	return defined $best && defined $own ? sprintf('%.3f', $own / $best) : '-';
}

# The same of graphs whose tasks are made each time: against oneTBB's that is made
# once, and against the best that makes them from data too.
sub of_dependences
{
	my ($times) = @_;
	my ($own, $hand, @others) = map { median(@{$times->{$_} // []}) }
		qw(ktrt-dep tbb libgomp libomp tbb-flow);
	my ($best) = sort { $a <=> $b } grep { defined } @others;

	return '' unless defined $own;
	return join '', map { defined $_ ? sprintf('  %7.3f', $own / $_) : '        -' }
		$hand, $best;
}

sub least
{
	return (sort { $a <=> $b } @_)[0];
}

sub shown
{
	return defined $_[0] ? sprintf('%.0f', $_[0]) : '-';
}

# They end with this program, however that ends.
sub compute_beside
{
	my $parent = $$;

	for (1 .. $busy) {
		my $child = fork // die "fork: $!\n";

		next if $child;
		while (getppid == $parent) {
			my $sum = 0;

			$sum += $_ for 1 .. 1e5;
		}
		POSIX::_exit(0);
	}
}

$ENV{BENCH_TASKS_BUSY} = $busy if $busy;
my $load = (split ' ', `cat /proc/loadavg`)[0] // '?';
compute_beside();
print "$cpus CPUs, medians of $rounds rounds, load average $load before",
	$busy ? ", beside $busy busy processes\n" : "\n";
printf "%-33s" . ' %9s' x @peers . "  of_best  by_least%s\n", 'ns a task', @peers,
	(grep { is_chosen($_->[0]) && $_->[0] =~ $patterns } @cases)
	? '  dep/tbb  dep/dep' : '';
my @chosen = grep { is_chosen($_->[0]) } @cases;
my $file = (grep { $_->[0] =~ /^block-/ } @chosen) && make_file();
my @told;
for (@chosen) {
	my ($case, $threads) = @$_;
	my $times = run_case($case, $threads);

	push @told, { case => $case, threads => 0 + $threads, ns => $times };

	printf "%-33s", "$case, $threads thread" . ($threads > 1 ? 's' : '');
	printf ' %9s', shown(median(@{$times->{$_} // []})) for @peers;
	printf "  %7s  %8s%s\n", of_best(\&median, $times, $case),
		of_best(\&least, $times, $case), of_dependences($times);
}
print "\n$_->[0]: $_->[2]\n" for grep { $_->[2] } @chosen;
print "failed: $_: $failures{$_}\n" for sort keys %failures;
print "no control group could be made: all of memory was there\n" if defined $group && !$group;
for my $name (grep { !-x program($_) && !/-/ } @names) {
	chomp(my $why = `tail -n 1 $directory/bench-tasks-$name.why 2>/dev/null`);
	print "not built here: $name", $why && ": $why", "\n";
}
unlink $file if $file;
rmdir $group if $group;
if ($output) {
	open my $json, '>', $output or die "$output: $!\n";
	print $json JSON::PP->new->canonical->pretty->encode(
		{ cpus => 0 + $cpus, load => $load, busy => $busy, rounds => $rounds,
			cases => \@told });
	close $json or die "$output: $!\n";
	print "$output has all times\n";
}
