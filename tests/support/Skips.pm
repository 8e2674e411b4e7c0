# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Which tests were skipped and why, as tests/run prints it: report_skips(TEST...) of
# judged tests (Verdict.pm), in groups of what their reasons are about.
# unexcused_skips(FILE, TEST...) are reasons that something is not installed which FILE does
# not excuse: each of its lines is an expression for a whole reason.

package Skips;

use strict;
use warnings;
use Exporter qw(import);
use List::Util qw(sum uniq);

our @EXPORT = qw(report_skips unexcused_skips);

# Where `make check` has installed what it wants, no other than excused reasons are of this group.
use constant NOT_INSTALLED => 'needs a program that is not installed or not built';

sub any_of
{
	my $any = join '|', @_;

	return qr/$any/;
}

# What a reason is about; the first expression that matches it decides.
my @groups = (
	['not possible under a sanitizer', qr/sanitizer|\btsan\b/i],
	['left to another check', qr/\bmake (?:check|kernel)|LTP_SOURCE/],
	['the machine was too busy', any_of(
		'(?:too|this|are) busy', '\bgot no C', '\bgets? no CPU (?!quota)',
		'CPU idled', 'CPU was idle', 'others use all', 'helpers at once',
		'helpers? (?:got|came|comes|took|began)', 'helper of a helper',
		'helper was late', 'helper in \d', 'helpers came', 'got no core',
		'no core for', 'held trials', 'before they begin', 'always gets',
		'no job (?:was|ended)', 'no process was killed', 'pages back all',
		'never looked', 'takes as long', 'no task is a trifle')],
	[NOT_INSTALLED, any_of(
		'not built', 'built without', 'without eBPF', ': make \w', 'mandoc is not',
		'compiler', 'cannot fetch', 'Graphviz', 'static C library')],
	['needs another machine (CPUs, nodes, devices)', any_of(
		'\bCPUs?\b(?! quota)', '\bnodes?\b', '\bcores?\b', 'huge pages', 'device',
		'NUMA', '\bGPU\b', 'libcudart', '(?:not|as on) x86', 'one thread here',
		'\d threads here', 'one worker', 'no workers', 'have no helper',
		'helper can be had', 'too little memory', 'power supplies', 'loopback')],
	['needs a right that is not there', any_of(
		'\broot\b', '\brights?\b', 'permit', 'privilege', 'refused', 'denied',
		'\block(?:ed|ing)\b', '\bmay\b(?! be so)', 'not allowed', 'be raised',
		'keep their priority', 'cannot reach', 'set-user-ID', 'nosuid')],
	['needs a feature of the kernel or its configuration', any_of(
		'kernel', 'filter', 'groups?\b', 'namespace', 'module', 'mount', 'file system',
		'tmpfs', '(?:sys|debug|trace|hugetlb)fs', 'userfaultfd', 'io_uring',
		'inotify', '/proc\b', '/dev/', '\bperf\b', 'move_pages', 'direct reads',
		'polic', 'binfmt', 'leases', 'mseal', 'seccomp', 'pids', 'uprobe',
		'process_vm_readv', 'registry', 'be so long', 'ptrace', 'BPF', 'backend')],
	[NOT_INSTALLED, any_of('^no [a-z0-9_.+-]+$', '^no \S+ here$', '^none of ')],
	['for another reason', qr/./s],
);

sub group_of
{
	my ($why) = @_;
	my ($group) = grep { $why =~ $_->[1] } @groups;

	return $group->[0];
}

# Reasons, the most frequent of a group first, each with the tests that gave it.
sub report_skips
{
	my (%tests, %times, %in_group);

	for my $test (grep { $_->{skip} } @_) {
		for my $skip (@{ $test->{skips} }) {
			my ($what, $why) = @$skip;

			$times{$why}++;
			push @{ $tests{$why} }, [$test, $what];
		}
	}
	for my $why (sort { $times{$b} <=> $times{$a} || $a cmp $b } keys %times) {
		push @{ $in_group{group_of($why)} }, $why;
	}
	for my $group (uniq map { $_->[0] } @groups) {
		my @reasons = @{ $in_group{$group} // [] } or next;
		my $sum = sum(map { $times{$_} } @reasons);

		print "\nskipped, $group: $sum\n";
		for my $why (@reasons) {
			printf "%5d  %s\n", $times{$why}, $why;
			print map { "         $_\n" } together(@{ $tests{$why} });
		}
	}
}

sub unexcused_skips
{
	my ($file, @tests) = @_;

	open my $excuses, '<', $file or die "$file: $!\n";
	chomp(my @excused = grep { !/^#/ } <$excuses>);
	my @reasons = uniq map { map { $_->[1] } @{ $_->{skips} } } grep { $_->{skip} } @tests;
	return grep {
		my $why = $_;

		group_of($why) eq NOT_INSTALLED
			&& !grep { $why =~ /^(?:$_)$/ } @excused;
	} sort @reasons;
}

# A line for each program that skipped: in which variants, and which test or how
# many.
sub together
{
	my (%skipped, @order);

	for (@_) {
		my ($test, $what) = @$_;
		my $name = $test->{name};

		push @order, $name unless $skipped{$name};
		$skipped{$name}{nr}++;
		$skipped{$name}{variants}{$test->{variant} || 'plain'} = 1;
		$skipped{$name}{what}{$what} = 1;
	}
	return map {
		my $all = $skipped{$_};
		my @variants = grep { $all->{variants}{$_} } qw(plain asan tsan);
		my @what = keys %{ $all->{what} };

		$_ . ("@variants" eq 'plain' ? '' : ' [' . join(' ', @variants) . ']')
			. (@what > 1 ? " ($all->{nr} tests)"
			   : length $what[0] ? " ($what[0])" : '')
	} @order;
}

1;
