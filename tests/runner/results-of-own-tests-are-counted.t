#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Shows tests/vm/series/own_results.c what tests of the kernel and of LTP print.  One that
# does only half of its work on a patched kernel must give other counts there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dir = scratch();
my $main = spew("$dir/main.c", <<'END');
#include <stdio.h>
#include <stdlib.h>

#include "own_results.h"

int main(int argc, char *argv[])
{
	static char text[1 << 20];
	struct run run = { 0 };

	fread(text, 1, sizeof(text) - 1, stdin);
	count_results(text, &run);
	printf("%u %u %u%s", run.well, run.badly, run.skipped,
	       argc > 2 && is_skip_status(argv[1], atoi(argv[2])) ? " skip" : "");
	return 0;
}
END
my $series = "$top/tests/vm/series";
my ($status, $said) = capture("$cc -std=gnu11 -I$series -o $dir/count $main "
	. "$series/own_results.c");
is($status, 0, 'the source of the guests compiles') or BAIL_OUT($said);

sub counts
{
	my ($title, $expected, $text, @end) = @_;
	my $file = spew("$dir/text", $text);
	my ($status, $said) = capture("$dir/count @end <$file");

	is($said, $expected, $title);
}

my $passed = "mmap01.c:9: TPASS: it works\n";
my $failed = "mmap01.c:9: TFAIL: it does not\n";
my $tap = "TAP version 13\n1..3\nok 1 one\nok 2 two # SKIP none\nnot ok 3 three\n";

counts('results of kselftest', '1 1 1', $tap);
counts('what a child writes again of them counts once', '1 1 1', $tap . $tap);
counts('also within another harness', '1 1 1', ($tap . $tap) =~ s/^/# /gmr);
counts('each pass of LTP counts', '4 0 0', $passed x 4);
counts('each failure of LTP counts', '1 5 0', $passed . $failed x 5);
counts('each TCONF and TBROK of LTP counts', '0 2 3',
       "x.c:9: TCONF: not here\n" x 3 . "x.c:9: TBROK: no\n" x 2);
counts('however many there are', '12000 0 0', "a: TPASS\n" x 12000);
counts('lines with no result are none', '0 0 0', "mmap01.c:9: TINFO: \nok\n" x 2);

for (['mm/cow', 4, ' skip'], ['mm/cow', 32, ''], ['mm/cow', 1, ''],
     ['ltp/mmap01', 32, ' skip'], ['ltp/mmap01', 4, ''], ['ltp/mmap01', 36, ''],
     ['ltp/mmap01', 0, '']) {
	my ($program, $status, $skips) = @$_;

	counts("status $status of $program means" . ($skips || ' no skip'), "0 0 0$skips", '',
	       $program, $status);
}
done_testing();
