#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Task Bench by the runtime: first its own check of every input in many configurations,
# then the least task time at half of the best rate (METG).
#
#   validate.pl [--workers N] [--steps N] [--only validate|metg] [--output FILE] PROGRAM
#
# Ends with 1 where a run fails.  METG: tasks compute for fewer and fewer iterations;
# of those with at least half of the most operations a second in any run of the same
# pattern the briefest, in time of all workers by tasks.  --steps is of graphs of 8
# points; wider ones have fewer.

use strict;
use warnings;
use Getopt::Long;
use JSON::PP;

chomp(my $workers = `getconf _NPROCESSORS_ONLN`);
my ($steps, $only, $output) = (1000, '');
GetOptions('workers=i' => \$workers, 'steps=i' => \$steps, 'only=s' => \$only,
	'output=s' => \$output) && @ARGV == 1
	or die "usage: validate.pl [--workers N] [--steps N] [--only validate|metg] "
	. "[--output FILE] PROGRAM\n";
my $program = shift;

# random_spread is refused by its options.
my @types = qw(trivial no_comm stencil_1d stencil_1d_periodic dom tree fft all_to_all
	       nearest spread random_nearest);
my %ways = (spawned => '', once => '-once');

my $nr_failed = 0;

# What it printed; undef if it failed.
sub run
{
	my $said = `$program @_ 2>&1`;

	return $said unless $?;
	$nr_failed++;
	print "FAILED: $program @_\n$said";
	return undef;
}

sub validate
{
	my @kernels = ('', '-kernel compute_bound -iter 16',
		'-kernel load_imbalance -iter 64 -imbalance 1.5',
		'-kernel memory_bound -iter 4 -scratch 65536', '-output 4096 -field 2');
	my $nr = 0;
	my @graphs = ('-type fft -steps 40 -width 16 -field 2 -and -type spread -steps 25 '
		. '-width 9 -field 3');

	for my $type (@types) {
		push @graphs, map { "-type $type -steps 40 -width $_->[0] $_->[1]" }
			map { [7, $_], [16, $_] } @kernels;
	}
	for my $graph (@graphs) {
		for my $way (values %ways) {
			$nr += 3;
			run("-workers $_ $way $graph") for 1, $workers, 5;
		}
	}
	print "$nr configurations, $nr_failed failed\n";
}

# In nanoseconds; undef where nothing reached half.
sub find_metg
{
	my ($graph, $nr_tasks) = @_;
	my @seen;

	for my $iterations (map { 1 << $_ } reverse 0 .. 11) {
		my $said = run("$graph -kernel compute_bound -iter $iterations") // return undef;
		my ($seconds) = $said =~ /^Elapsed Time (\S+)/m;
		my ($rate) = $said =~ m{^FLOP/s (\S+)}m;

		push @seen, [$rate, 1e9 * $seconds * $workers / $nr_tasks];
	}
	my ($best) = sort { $b <=> $a } map { $_->[0] } @seen;
	my ($least) = sort { $a <=> $b } map { $_->[0] >= $best / 2 ? $_->[1] : () } @seen;
	return $least;
}

sub metg
{
	my %found;

	print "METG, ns, $workers workers, " . 8 * $steps . " tasks\n";
	printf "%-12s %6s %10s %10s\n", 'type', 'width', sort keys %ways;
	for my $type (qw(trivial stencil_1d nearest fft all_to_all)) {
		for my $width (2, 8, 64) {
			my $graph = "-type $type -width $width -workers $workers";
			my $nr_steps = int($steps * 8 / $width);

			$graph .= " -steps $nr_steps";
			$graph .= ' -radix 5' if $type eq 'nearest';
			$found{$type}{$width} = { map {
				$_ => find_metg("$graph $ways{$_}", $nr_steps * $width)
			} keys %ways };
			printf "%-12s %6d %10s %10s\n", $type, $width,
				map { defined $_ ? sprintf('%.0f', $_) : '-' }
				map { $found{$type}{$width}{$_} } sort keys %ways;
		}
	}
	return \%found;
}

validate() unless $only eq 'metg';
my $found = $only eq 'validate' ? {} : metg();
if ($output) {
	open my $json, '>', $output or die "$output: $!\n";
	print $json JSON::PP->new->canonical->pretty->encode(
		{ workers => 0 + $workers, steps => $steps, metg_ns => $found,
		  failed => $nr_failed });
	close $json or die "$output: $!\n";
}
exit($nr_failed > 0);
