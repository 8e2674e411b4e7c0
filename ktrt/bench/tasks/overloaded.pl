#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# For how much of the time two workers of the runtime share a core, by the
# kernel's own records of every switch and wakeup (perf, so root):
#
#   overloaded.pl COMMAND [ARGUMENT...]
#
# Counted twice: from the moment that a worker has run since it last blocked,
# as the founding paper counts, and from the moment that it was woken.  Of the
# time from the first worker's first switch to the last one's last, times the
# CPUs that workers ran on.

use strict;
use warnings;
use File::Temp;

@ARGV or die "usage: overloaded.pl COMMAND [ARGUMENT...]\n";
my ($file, $named) = map { File::Temp->new(SUFFIX => '.perf') } 1 .. 2;
system('perf', 'record', '-q', '-a', '-o', "$file", '-e', 'sched:sched_switch',
	'-e', 'sched:sched_wakeup', '-e', 'sched:sched_wakeup_new', '--',
	'sh', '-c', 'echo $$ >"$0"; exec "$@"', "$named", @ARGV) == 0
	or die "overloaded.pl: perf record or the command failed\n";
chomp(my $process = <$named>);

# [time, cpu, kind, ...]
sub read_events
{
	my (@events, %workers);

	open my $script, '-|',
		"perf script -i $file -F pid,tid,cpu,time,event,trace 2>/dev/null"
		or die "overloaded.pl: perf script: $!\n";
	while (<$script>) {
		my ($of, $cpu, $time, $name, $rest) =
			m{^\s*(\d+)/\d+\s+\[(\d+)\]\s+([\d.]+):\s+sched:(\w+):\s+(.*)}
			or next;

		if ($name eq 'sched_switch') {
			my ($from, $out, $state, $in) = $rest =~
				/prev_comm=(.*?) prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)/
				or next;

			$workers{$out} = 1
				if $of == $process && $from =~ m{^ktrt/\d};
			push @events, [$time, $cpu + 0, 'switch', $out, $in, $state =~ /^R/];
		} elsif ($rest =~ /\bpid=(\d+) .*target_cpu=(\d+)/) {
			push @events, [$time, $2 + 0, 'wake', $1];
		}
	}
	close $script;
	return (\@events, \%workers);
}

my ($events, $workers) = read_events();
my (%at, %ran, %last, %first, %ready_s, %ran_s);

# What has been so on a CPU up to now.
sub account
{
	my ($cpu, $now) = @_;
	my @here = grep { defined $at{$_} && $at{$_} == $cpu } keys %at;
	my $since = $last{$cpu} // $now;

	$first{$cpu} //= $now;
	$last{$cpu} = $now;
	$ready_s{$cpu} += $now - $since if @here > 1;
	$ran_s{$cpu} += $now - $since if (grep { $ran{$_} } @here) > 1;
}

sub place
{
	my ($tid, $cpu, $now) = @_;

	account($at{$tid}, $now) if defined $at{$tid} && $at{$tid} != $cpu;
	account($cpu, $now);
	$at{$tid} = $cpu;
}

for (@$events) {
	my ($now, $cpu, $kind, $one, $two, $preempted) = @$_;

	if ($kind eq 'wake') {
		next if !$workers->{$one} || defined $at{$one};
		place($one, $cpu, $now);
		$ran{$one} = 0;
		next;
	}
	if ($workers->{$one}) {
		account($cpu, $now);
		if ($preempted) {
			@at{$one} = $cpu;
			$ran{$one} = 1;
		} else {
			delete $at{$one};
		}
	}
	if ($workers->{$two}) {
		place($two, $cpu, $now);
		$ran{$two} = 1;
	}
}

my ($all, $ready, $ran) = (0, 0, 0);
for my $cpu (keys %last) {
	$all += $last{$cpu} - $first{$cpu};
	$ready += $ready_s{$cpu} // 0;
	$ran += $ran_s{$cpu} // 0;
}
$all or die "overloaded.pl: no worker was seen\n";
printf "two workers on a core: %.2f %% of %.3f s (both have run), %.2f %% (both are ready); %d workers, %d CPUs\n",
	100 * $ran / $all, $all, 100 * $ready / $all, scalar keys %$workers,
	scalar keys %last;
