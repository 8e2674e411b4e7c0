#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The library has its four static tracepoints, each with the arguments that
# user/trace.h names; and whoever attaches to them sees a job begin, each of its
# chunks, and its end.  Attaching needs root and a kernel with uprobes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

# A copy: whoever attaches to a file hears of every program that has it.
my $directory = scratch();
my $library = "$directory/libktask.so.0";
my ($failed, $why) = capture("cp -L $build/libktask.so $library && "
	. "ln -s libktask.so.0 $directory/libktask.so");
die "copying the library: $why" if $failed;

my $group = "ktask_test_$$";
my %nr_arguments = (job_start => 3, chunk => 3, lend => 3, job_end => 5);
my $units = 120;

# Provider, name, address and arguments of every probe of a file.
sub probes_of
{
	my ($path) = @_;
	my (undef, $notes) = capture("readelf -nW $path");
	my @probes;

	while ($notes =~ /Provider:\ (\S+)\s+Name:\ (\S+)\s+
			  Location:\ (\w+),\ Base:\ (\w+),\ Semaphore:\ (\w+)
			  \s+Arguments:\ ([^\n]*)/gx) {
		push @probes, { provider => $1, name => $2,
				address => hex $3, base => hex $4,
				semaphore => hex $5, arguments => $6 };
	}
	return grep { $_->{provider} eq 'ktask' } @probes;
}

my @probes = probes_of($library);
plan skip_all => 'built without <sys/sdt.h>'
	if !@probes && (capture("echo '#include <sys/sdt.h>' | "
				. "$cc -E - >/dev/null"))[0];

my %seen = map { $_->{name} => 1 } @probes;
is_deeply([sort keys %seen], [sort keys %nr_arguments], 'the four are there');
for my $probe (@probes) {
	my @arguments = split / (?=-?\d+@)/, $probe->{arguments};

	is(scalar @arguments, $nr_arguments{$probe->{name}},
	   "$probe->{name} has its arguments") or diag($probe->{arguments});
	is((grep { /^-?[48]@\S/ } @arguments), @arguments,
	   'each of four or eight bytes, in a place');
	is($probe->{semaphore}, 0, 'and costs nothing while nobody looks');
}
for my $other ("$build/libktask-preload.so", "$build/ktask-commands") {
	my %there = map { $_->{name} => 1 } probes_of($other);
	is_deeply([sort keys %there], [sort keys %nr_arguments],
		  ($other =~ s{.*/}{}r) . ' has them as well');
}

# ---- attach ----

my ($tracing, $instance, $mounted);

sub put
{
	my ($path, $mode, $text) = @_;

	open(my $out, $mode, $path) or return 0;
	$out->autoflush(1);
	my $written = print $out $text;
	return close($out) && $written;
}

END {
	my $status = $?;

	put("$instance/events/$group/enable", '>', "0\n"), rmdir $instance
		if $instance && -d $instance;
	if ($tracing) {
		put("$tracing/uprobe_events", '>>', "-:$group/$_\n")
			for map { "$_->{event}" } grep { $_->{event} } @probes;
	}
	system("umount $mounted") if $mounted;
	$? = $status;
}

# Where tracefs is, or is put for this test.
sub find_tracing
{
	for my $dir ('/sys/kernel/tracing', '/sys/kernel/debug/tracing') {
		return $dir if -e "$dir/uprobe_events";
	}
	my $dir = scratch();
	return if (capture("mount -t tracefs tracefs $dir"))[0];
	$mounted = $dir;
	return -e "$dir/uprobe_events" ? $dir : undef;
}

# Uprobes want offsets in the file.
sub offset_of
{
	my ($address) = @_;
	my (undef, $headers) = capture("readelf -lW $library");

	while ($headers =~ /^\s+LOAD\s+(\w+)\s+(\w+)\s+\w+\s+(\w+)/mg) {
		my ($offset, $start, $size) = (hex $1, hex $2, hex $3);
		return $address - $start + $offset
			if $address >= $start && $address < $start + $size;
	}
	die "no segment has $address\n";
}

# "8@-80(%rbp)" as uprobes write it: "-80(%bp):u64".
sub fetch
{
	my ($argument) = @_;
	my ($sign, $bytes, $place) = $argument =~ /^(-?)(\d)@(.*)$/;
	my $type = ($sign ? 's' : 'u') . 8 * $bytes;

	return '\\' . $1 . ":$type" if $place =~ /^\$(-?\d+)$/;
	my ($offset, $register) = $place =~ /^(-?\d*)\(%(\w+)\)$/;
	$register //= ($place =~ /^%(\w+)$/)[0] // return;
	# A part of a register is read whole, and cut by the type.
	$register =~ s/^r(?=[a-z])//;
	$register =~ s/^e(?=[a-z])//;
	$register =~ s/^(r\d+)[dwb]$/$1/;
	return "%$register:$type" if $place =~ /^%/;
	$offset = '0' if $offset eq '';
	return ($offset =~ /^-/ ? $offset : "+$offset") . "(%$register):$type";
}

sub attach
{
	my ($probe, $number) = @_;
	my @fetches = map { fetch($_) } split / (?=-?\d+@)/,
		$probe->{arguments};
	my @names = map { "a$_" } 0 .. $#fetches;
	my $event = "$probe->{name}_$number";
	my $text = "p:$group/$event $library:"
		. sprintf('0x%x', offset_of($probe->{address}));

	$text .= " $names[$_]=$fetches[$_]" for 0 .. $#fetches;
	# The name of the job, as a string.
	$text .= ' name=+0(' . ($fetches[0] =~ s/:u64$//r) . '):ustring'
		if $probe->{name} =~ /^job_/;
	return 0 unless put("$tracing/uprobe_events", '>>', "$text\n");
	$probe->{event} = $event;
	return 1;
}

# A job of two chunks: the caller has done its own when the helper is in the
# other one, which ends when the helper has been lent the caller's priority.
# Prints the helper's thread id; again and again until one came.
my $lender = <<'END';
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <ktask/ktask.h>

static pid_t caller, helper;

static int chunk(void *start, void *end, void *arg)
{
	volatile pid_t *in_chunk = &helper;

	if (gettid() != caller)
		*in_chunk = gettid();
	for (int i = 0; i < 5000 && gettid() == caller && !*in_chunk; i++)
		usleep(100);
	for (int i = 0; i < 50000 && gettid() != caller &&
	     sched_getscheduler(0) == SCHED_IDLE; i++)
		usleep(100);
	return 0;
}

int main(void)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 1);

	setpriority(PRIO_PROCESS, 0, 3);
	caller = gettid();
	ktask_ctl_set_max_threads(&ctl, 2);
	ktask_ctl_set_result(&ctl, &result);
	for (int i = 0; i < 30 && !helper; i++)
		if (ktask_run(NULL, 2, &ctl))
			return 1;
	printf("helper %d lent %u\n", helper, result.helpers_lent);
	return 0;
}
END

# Each event as [name, { argument => value }].
my $output; # of the last command

sub trace_of
{
	my ($command) = @_;

	put("$instance/events/$group/enable", '>', "1\n") or return;
	my ($status, $said) = capture($command);
	put("$instance/events/$group/enable", '>', "0\n");
	is($status, 0, 'the job under trace ends well') or diag($said);
	my @events;

	$output = $said;
	for (split /\n/, slurp("$instance/trace")) {
		/: (job_start|chunk|lend|job_end)_\d+: \(\w+\)(.*)/ or next;
		my ($event, $rest) = ($1, $2);
		my %values = $rest =~ /(\w+)=("[^"]*"|\S+)/g;
		push @events, [$event, \%values];
	}
	return @events;
}

SKIP: {
	skip 'only root may attach', 1 if $>;
	skip 'uprobe arguments are read as on x86', 1
		if (capture('uname -m'))[1] !~ /^x86_64/;
	$tracing = find_tracing() or skip 'no tracefs with uprobe_events', 1;
	my $refused = grep { !attach($probes[$_], $_) } 0 .. $#probes;
	skip 'this kernel refuses uprobes', 1 if $refused == @probes;
	is($refused, 0, 'every probe can be attached to');
	$instance = "$tracing/instances/$group";
	mkdir $instance or skip "no buffer of its own: $!", 1;

	my @events = trace_of("python3 $top/ktask/tests/cli/fixtures/job.py "
			      . "$library traced 0.12");
	my @starts = grep { $_->[0] eq 'job_start' } @events;
	my @chunks = grep { $_->[0] eq 'chunk' } @events;
	my @ends = grep { $_->[0] eq 'job_end' } @events;

	is(scalar @starts, 1, 'one job begins');
	is($starts[0][1]{name}, '"traced"', 'by its name');
	is($starts[0][1]{a1}, $units, 'with so many units');
	cmp_ok($starts[0][1]{a2}, '>=', 1, 'for one thread at least');
	is(scalar @ends, 1, 'one job ends');
	is($ends[0][1]{name}, '"traced"', 'the same');
	is($ends[0][1]{a1}, 0, 'without an error');
	is($ends[0][1]{a2}, $units, 'with all units done');
	cmp_ok($ends[0][1]{a3}, '>=', 2e6, 'after a while');
	cmp_ok($ends[0][1]{a4}, '>=', 1, 'by one thread at least');
	my ($sum, $time) = (0, 0);
	$sum += $_->[1]{a1}, $time += $_->[1]{a2} for @chunks;
	is($sum, $units, 'chunks have each unit');
	cmp_ok($time, '>=', 200e6, 'and say how long they took');
	is((grep { $_->[1]{a0} < 2000 || $_->[1]{a0} >= 2000 + $units }
	    @chunks), 0, 'and where they start');
	is($events[0][0], 'job_start', 'the beginning comes first');
	is($events[-1][0], 'job_end', 'the end last');

	my $dir = scratch();
	spew("$dir/lend.c", $lender);
	my ($status, $said) = capture("$cc -I$top/ktask/include -o $dir/lend "
		. "$dir/lend.c -L$directory -lktask -Wl,-rpath,$directory");
	is($status, 0, 'a job that ends in a helper builds') or diag($said);
	put("$instance/trace", '>', '');
	@events = trace_of("$dir/lend");
	my ($helper, $lent) = $output =~ /^helper (\d+) lent (\d+)$/m;
	skip 'no helper came', 1 unless $helper;
	skip 'priorities are not lent here', 1 unless $lent;
	my @lends = grep { $_->[0] eq 'lend' } @events;
	is(scalar @lends, 1, 'one loan');
	is($lends[0][1]{a0}, $helper, 'to the helper');
	is($lends[0][1]{a1}, 0, 'of the policy of its caller');
	is($lends[0][1]{a2}, 3, 'and its nice value');
}

done_testing();
