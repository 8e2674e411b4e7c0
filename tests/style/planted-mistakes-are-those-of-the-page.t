#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# ktask/doc/simulation.md lists the mistakes that ktask/tests/sim/mutations plants, and each has
# its place in the code.  Which seeds find them is not compared: that takes minutes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $page = slurp("$top/ktask/doc/simulation.md");
my $scratch = scratch();

sub status_for
{
	my ($status) = capture("perl '$top/ktask/tests/sim/mutations' --compare "
		. "--page '" . spew("$scratch/page.md", $_[0]) . "'");

	return $status;
}

my ($status, $said) = capture("perl '$top/ktask/tests/sim/mutations' --compare");
is($status, 0, 'the page lists the mistakes') or diag($said);
is(status_for($page =~ s/^(\| an? .*\| )\d+( \|)/${1}99999$2/mr), 0,
	'seeds may be others');
isnt(status_for($page =~ s/^\| an? .*\n//mr), 0, 'a row that is missing is found');
isnt(status_for($page =~ s/^\| a (.*)/| a new $1/mr), 0, 'another name is found');
isnt(status_for($page =~ s/^(\| an? .*\n)/$1$1/mr), 0, 'a row too many is found');
isnt(status_for($page =~ s/plants \d+ mistakes/plants 1 mistakes/r), 0,
	'another number is found');
isnt(status_for('no table'), 0, 'and so is a page without the table');

# Of mistakes that are not planted now, only the order of the rows changes.
my $mixed = $page =~ s/^(\| an? .*\n)(\| .*\n)/$2$1/mr;
isnt(status_for($mixed), 0, 'another order is found');
($status) = capture("perl '$top/ktask/tests/sim/mutations' --update --page "
	. "'$scratch/page.md' 'no such mistake'");
is($status, 0, 'a page can be brought up to date');
is(slurp("$scratch/page.md"), $page, 'and all else on it stays');
done_testing();
