#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# scripts/results: a comparison that missed its goal is said to be bounded where all memory
# present gains no more on each side that was missed, and nothing else was missed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

plan skip_all => 'no python3' unless have('python3');

# bounded GOALS, KTASK, PRESENT, MEMORY: seconds, beside 10 and 20 of the others
sub bounded
{
	my ($goals, $ktask, $present, $memory) = @_;
	my ($status, $said) = capture("python3 -B -c '
import importlib.machinery, importlib.util
loader = importlib.machinery.SourceFileLoader(\"results\", \"$top/scripts/results\")
results = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(\"results\", loader))
loader.exec_module(results)
print(results.is_bounded({
    \"unit\": \"x\", \"goals\": {$goals}, \"memory\": \"<= 1.1\",
    \"values\": {\"plain\": [10], \"other\": [20], \"ktask\": [$ktask],
                 \"present\": [$present]},
    \"most_mib\": {\"plain\": [100], \"ktask\": [$memory]}}, \"plain\"))'");

	chomp $said;
	return $said;
}

my $plain = '"plain": ">= 1.5"';
my $both = $plain . ', "other": ">= 1.5"';

is(bounded($plain, 9, 8, 100), 'True', 'one side that could not be reached');
is(bounded($plain, 9, 5, 100), 'False', 'one that could be');
is(bounded($both, 9, 8, 100), 'True', 'one of two with the same bound, and the other reached');
is(bounded($both, 15, 15, 100), 'True', 'two that could not be reached');
is(bounded($both, 15, 10, 100), 'False', 'two of which one could be');
is(bounded($plain, 9, 8, 120), 'False', 'too much memory was had besides');
is(bounded($plain, 5, 8, 100), 'False', 'nothing was missed');

done_testing();
