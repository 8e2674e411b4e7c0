# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# How many CPUs of this machine were busy while tests ran, with them or anything else:
# whoever orders tests sees where CPUs were left idle.  No verdict depends on it.
#
#   look_at_cpus()	to be called often; reads /proc/stat once a minute
#   report_cpus()	prints the mean, and that of each minute: "of 2 CPUs 1.73 were busy;
#			minute by minute 1.9 2.0 1.3"; nothing where there is no /proc/stat

package BusyCpus;

use strict;
use warnings;
use Exporter qw(import);
use List::Util qw(sum);
use POSIX qw(sysconf _SC_CLK_TCK);
use Time::HiRes qw(time);

our @EXPORT = qw(look_at_cpus report_cpus);

use constant PERIOD => 60;		# seconds
use constant REST_MIN => 10;		# seconds; less counts with what was before

my @looks;				# [time, seconds that CPUs have been busy]

# All but idle (the fourth), waiting for a device, and what other machines took.
sub busy_seconds
{
	open(my $in, '<', '/proc/stat') or return;
	my @ticks = <$in> =~ /\d+/g;

	return sum(@ticks[0 .. 2, 5, 6]) / sysconf(_SC_CLK_TCK);
}

sub add_look
{
	my $busy = busy_seconds() // return;

	push @looks, [time, $busy];
}

sub look_at_cpus
{
	add_look() if !@looks || time - $looks[-1][0] >= PERIOD;
}

sub mean_between
{
	my ($from, $to) = @_;

	return ($to->[1] - $from->[1]) / ($to->[0] - $from->[0]);
}

sub report_cpus
{
	pop @looks if @looks > 2 && time - $looks[-1][0] < REST_MIN;
	add_look();
	return if @looks < 2;
	my @means = map { mean_between(@looks[$_ - 1, $_]) } 1 .. $#looks;

	chomp(my $cpus = qx(getconf _NPROCESSORS_ONLN));
	printf "\nof %d CPUs %.2f were busy; minute by minute %s\n", $cpus,
		mean_between(@looks[0, -1]), join ' ', map { sprintf '%.1f', $_ } @means;
}

1;
