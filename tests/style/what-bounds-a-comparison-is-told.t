#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# scripts/results: a comparison that missed its goal is said to be bounded where all memory
# present, or a thread that knows what will be touched, gains no more on each side that was
# missed, and nothing else was missed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

plan skip_all => 'no python3' unless have('python3');

# bounded GOALS, KTASK, PRESENT, MEMORY, BESIDE: seconds, beside 10 and 20 of the others
sub bounded
{
	my ($goals, $ktask, $present, $memory, $beside) = @_;
	my $knows = $beside ? ", \"beside\": [$beside]" : '';
	my ($status, $said) = capture("python3 -B -c '
import importlib.machinery, importlib.util
loader = importlib.machinery.SourceFileLoader(\"results\", \"$top/scripts/results\")
results = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(\"results\", loader))
loader.exec_module(results)
print(results.ceiling_of({
    \"unit\": \"x\", \"goals\": {$goals}, \"memory\": \"<= 1.1\",
    \"values\": {\"plain\": [10], \"other\": [20], \"ktask\": [$ktask],
                 \"present\": [$present]$knows},
    \"most_mib\": {\"plain\": [100], \"ktask\": [$memory]}}, \"plain\"))'");

	chomp $said;
	return $said;
}

my $plain = '"plain": ">= 1.5"';
my $both = $plain . ', "other": ">= 1.5"';

my $present = 'as it is with all memory present';
my $knows = 'as it is with a thread that knows what will be touched';

is(bounded($plain, 9, 8, 100), $present, 'one side that could not be reached');
is(bounded($plain, 9, 5, 100), 'None', 'one that could be');
is(bounded($plain, 9, 5, 100, 8), $knows, 'one that a thread that knows does not reach');
is(bounded($plain, 9, 5, 100, 6), 'None', 'one that such a thread reaches');
is(bounded($both, 9, 8, 100), $present, 'one of two with the same bound, and the other reached');
is(bounded($both, 15, 15, 100), $present, 'two that could not be reached');
is(bounded($both, 15, 10, 100), 'None', 'two of which one could be');
is(bounded($plain, 9, 8, 120), 'None', 'too much memory was had besides');
is(bounded($plain, 5, 8, 100), 'None', 'nothing was missed');

done_testing();
