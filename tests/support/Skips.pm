# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Which tests were skipped and why, as tests/run prints it: report_skips(TEST...) of
# judged tests (Verdict.pm), in groups of what their reasons are about.

package Skips;

use strict;
use warnings;
use Exporter qw(import);
use List::Util qw(sum);

our @EXPORT = qw(report_skips);

# What a reason is about; the first expression that matches it decides.
my @groups = (
	['not possible under a sanitizer', qr/sanitizer|\btsan\b/i],
	['needs another machine (CPUs, nodes, devices)',
	 qr/\bCPUs?\b|\bnodes?\b|\bcores?\b|huge pages|device|disk|NUMA/],
	['needs a right that is not there',
	 qr/\broot\b|\bright\b|permit|privilege|refuse|denied|locked/i],
	['needs a program that is not installed or not built',
	 qr/\bno [a-z0-9_.-]+$|install|not built|without eBPF|\bmake\b/],
	['needs a feature of the kernel or its configuration',
	 qr/kernel|filter|cgroup|group|namespace|module|mount|file system/],
	['for another reason', qr/./s],
);

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
		my ($group) = grep { $why =~ $_->[1] } @groups;

		push @{ $in_group{$group->[0]} }, $why;
	}
	for my $group (map { $_->[0] } @groups) {
		my @reasons = @{ $in_group{$group} // [] } or next;
		my $sum = sum(map { $times{$_} } @reasons);

		print "\nskipped, $group: $sum\n";
		for my $why (@reasons) {
			printf "%5d  %s\n", $times{$why}, $why;
			print map { "         $_\n" } together(@{ $tests{$why} });
		}
	}
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
