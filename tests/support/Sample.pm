# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What `make check` leaves to other days.  Where something is done in several places, and
# hardly differs between them, one of them has all of it each day, and each other place a
# third of it, by turns: three days in a row cover everything in every place.  A place that
# was given no turns has all of it each day: so have 6.12, kernels that find errors, and a
# new kernel.
#
#   third_of_the_day(PLACE, NR, LIST...)	those of the list that are for that place today;
#					NR: 0, 1, and 2 are three different thirds
#
# KTASK_TEST_DAY=NUMBER is another day, and KTASK_TEST_DAY=all every one: `make check
# DAY=...`, `make check-vm` and `make check-bare`, which leave out nothing.  The number is
# printed wherever something is left out.

package Sample;

use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(third_of_the_day);

use constant DAYS => 3;
use constant SECONDS_OF_A_DAY => 86400;

# The places that take turns; each begins with another third.
my %first_day = ('6.1' => 0, '7' => 1);

# Nothing: every day.
sub day_number
{
	my $day = $ENV{KTASK_TEST_DAY};

	$day = int(time / SECONDS_OF_A_DAY) unless defined $day && length $day;
	return if $day eq 'all';
	$day =~ /^\d+$/ or die "KTASK_TEST_DAY=$day: want a number, or all\n";
	return $day;
}

sub third_of_the_day
{
	my ($place, $nr, @list) = @_;
	my $first = $first_day{$place};
	my $day = day_number();
	my @today = @list;

	@today = @list[grep { ($_ + $day + $first + $nr) % DAYS == 0 } 0 .. $#list]
		if defined $day && defined $first;
	print "# KTASK_TEST_DAY=$day: ", scalar @today, ' of ', scalar @list,
		" that are done by turns on $place\n" if @today < @list;
	return @today;
}

1;
