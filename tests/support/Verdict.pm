# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What a test that has ended amounts to: judge() reads what it printed and how
# it ended, and sets its counts, its problems and the reasons of its skips.
# Does not run anything; tests/run does.

package Verdict;

use strict;
use warnings;
use Exporter qw(import);
use TAP::Parser;

our @EXPORT = qw(judge);

sub note_skip
{
	my ($test, $what, $why) = @_;

	$test->{skip}++;
	push @{ $test->{skips} },
		[$what, $why =~ /\S/ ? $why : 'no reason given'];
}

sub note_problem
{
	my ($test, $problem, $tests) = @_;

	$test->{fail} += $tests // 1;
	push @{ $test->{problems} }, $problem;
}

# cmocka 1.1.5 says "not ok N # SKIP name" for a skipped test, which TAP
# calls a failure, and has no place for a reason: tests print "# SKIP why"
# just before.  The setup and teardown of a group have the number 0.
sub repair_cmocka
{
	my ($test) = @_;
	my $reason = '';
	my @lines;

	for my $line (split /\n/, $test->{out}) {
		if ($line =~ /^# SKIP (.+)/) {
			$reason = $1;
		} elsif ($line =~ /^not ok (\d+) # SKIP (.*)/) {
			$line = "ok $1 - $2 # SKIP $reason";
		} elsif ($line =~ /^not ok 0 .* (GROUP \w+)$/) {
			note_problem($test, lc "$1 failed");
			next;
		}
		$reason = '' if $line =~ /^(not )?ok/;
		push @lines, $line;
	}
	return join "\n", @lines, '';
}

sub looks_like_tap
{
	for my $line (split /\n/, $_[0]) {
		next if $line =~ /^\s*(#|$)/;
		return $line =~ /^(TAP version \d|1\.\.\d|(not )?ok\b)/;
	}
	return 0;
}

sub read_tap
{
	my ($test) = @_;
	my $parser = TAP::Parser->new({ tap => repair_cmocka($test) });

	while (my $result = $parser->next) {
		if ($result->is_bailout) {
			note_problem($test, 'bailed out');
		} elsif (!$result->is_test) {
			next;
		} elsif (!$result->is_actual_ok) {
			$test->{fail}++;
		} elsif ($result->has_skip) {
			note_skip($test, $result->description =~ s/^- //r,
				  $result->explanation // '');
		} else {
			$test->{pass}++;
		}
	}
	if ($parser->skip_all) {
		note_skip($test, '', $parser->skip_all);
		return;
	}
	my $planned = $parser->tests_planned // 0;
	my $missing = $planned - $parser->tests_run;
	if ($missing > 0) {
		my $code = $test->{status} >> 8;

		note_problem($test, "$missing of $planned tests did not run"
				    . ($code ? ", exit status $code" : ''), $missing);
	} elsif ($parser->parse_errors) {
		note_problem($test, join('; ', $parser->parse_errors));
	}
}

sub read_status
{
	my ($test) = @_;
	my $code = $test->{status} >> 8;

	if ($test->{status} == 0) {
		$test->{pass} = 1;
	} elsif ($test->{status} == 77 << 8) {
		note_skip($test, '', $test->{log} =~ /([^\n]+)\n*\z/ ? $1 : '');
	} else {
		$test->{fail} = 1;
	}
}

sub judge
{
	my ($test) = @_;
	my $signal = $test->{status} & 127;
	my $code = $test->{status} >> 8;

	@$test{qw(pass fail skip)} = (0, 0, 0);
	if (looks_like_tap($test->{out})) {
		read_tap($test);
		note_problem($test, "exit status $code without a failed test")
			if $code && !$test->{fail};
	} else {
		read_status($test);
	}
	if ($test->{timed_out}) {
		note_problem($test, "no end within $test->{limit} s",
			     $test->{fail} ? 0 : 1);
	} elsif ($test->{overflow}) {
		note_problem($test, 'too much output', $test->{fail} ? 0 : 1);
	} elsif ($signal) {
		note_problem($test, "killed by signal $signal",
			     $test->{fail} ? 0 : 1);
	} elsif ($test->{left_behind}) {
		note_problem($test, 'left processes behind');
	}
}

1;
