# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What is asked of a test that tests/run runs again: only what failed at first, of
# which KTASK_TEST_AGAIN has the titles, a line each.  For tests of several parts that
# take minutes each, with titles "PART: WHAT"; the mark that is printed tells tests/run
# that all else stays as it was.  What others never read, they repeat as a whole.
#
#   failed_parts(PART...)	of each part that failed what did, { PART => [WHAT...] };
#				nothing where all is to be done

package Again;

use strict;
use warnings;
use Exporter qw(import);

our @EXPORT = qw(failed_parts);

use constant MARK => "# only what failed is repeated\n";

sub failed_parts
{
	my @lines = split /\n/, $ENV{KTASK_TEST_AGAIN} // '';
	my $part = join '|', map { quotemeta } @_;
	my %failed;

	for (@lines) {
		# What belongs to no part may be behind all others.
		/^($part): (.+)/ or return;
		push @{ $failed{$1} }, $2;
	}
	print MARK if %failed;
	return %failed ? \%failed : undef;
}

1;
