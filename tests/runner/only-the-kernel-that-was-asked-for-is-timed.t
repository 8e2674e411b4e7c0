#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Shows series_boots() of tests/vm/Series.pm logs of guests: figures of a kernel that the
# log does not name are passed on to nobody, and the run ends with a failure.  Nothing is
# booted.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../vm", "$FindBin::Bin/../support";
use House;
use Test::More;

my $at = scratch();
my $release = '6.12.117-ktask-0123456789ab';

spew("$at/release", "$release\n");

# time_one(KERNEL, RELEASE): exit status, and what a run said that asks for this kernel
# and finds that one in the log.
sub time_one
{
	my ($kernel, $runs) = @_;
	my $dir = scratch();

	spew("$dir/guests/bench-series-6.12/log", "[    0.0] Linux version $runs (x) #1\n");
	spew("$dir/run.pl", <<'END');
use Series qw(series_boots);
my ($at, $kernel) = @ARGV;
no warnings 'redefine';
*Series::series_kernels = sub { $at };
*Series::choose_machine = *Series::build_guest = *Series::run_guest = sub {};
series_boots('6.12', sub { print "timed $_[0]\n" }, '', 'one', $kernel);
END
	return capture("KTASK_BUILD=$dir perl -I$top/tests/vm -I$top/tests/support "
		. "$dir/run.pl $at $kernel");
}

for my $case ([plain => '6.12.117-plain'], [ktask => $release], [off => $release]) {
	my ($kernel, $runs) = @$case;
	my ($status, $said) = time_one($kernel, $runs);

	is($status, 0, "$kernel runs");
	like($said, qr/^timed $kernel$/m, "$kernel is timed");
}
for my $case ([plain => $release], [ktask => '6.12.117-plain'],
	      [off => '6.12.117-plain'], [ktask => '6.12.117-ktask-ba9876543210']) {
	my ($kernel, $runs) = @$case;
	my ($status, $said) = time_one($kernel, $runs);

	isnt($status, 0, "$runs is not $kernel");
	like($said, qr/^not ok .*\Q$runs\E/m, 'it is said which one ran');
	unlike($said, qr/^timed/m, 'nothing is timed');
}
done_testing();
