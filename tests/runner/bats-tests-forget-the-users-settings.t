#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Shows that what the user exported changes no test that bats runs, also where
# tests/run does not clear the environment: every .bats file reads
# tests/support/environment.bash, by itself or with its helpers.

use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $reads = qr{^(?:load|\.) \S*tests/support/environment\.bash\b}m;

# Does this file, or one that it loads?
sub clears
{
	my ($file) = @_;
	my $text = slurp($file);
	my ($dir) = $file =~ m{(.*)/};

	return 1 if $text =~ $reads;
	return !!grep { -f && slurp($_) =~ $reads }
		map { ("$dir/$_", "$dir/$_.bash") } $text =~ /^load (\S+)/mg;
}

chdir $top or die "$top: $!\n";
my @files = grep { -f } split /\n/,
	(capture('find ktask/tests umt/tests ktrt/tests -name "*.bats"'))[1];
my @keep_all = grep { !clears($_) } @files;
ok(@files > 0, 'there are tests for bats');
is("@keep_all", '', 'all of them read environment.bash');

my $dir = tempdir(CLEANUP => 1);
open(my $out, '>', "$dir/test.bats") or die "$dir: $!\n";
print $out <<'END' =~ s/ENVIRONMENT/$top\/tests\/support\/environment.bash/r;
load ENVIRONMENT
@test "only what a test may be told is left" {
	! env | grep -E '^(KTASK_[^BT]|KTRT_|UMT_|LD_PRELOAD|HWLOC)' || false
	[ "$KTASK_TEST_SEED" = 7 ]
	[ "$KTASK_BUILD" = /somewhere ]
}
END
close $out;
my %told = (KTASK_RUN_RECORDS => 'x', KTASK_MAX_THREADS => 1, KTASK_NEW => 1,
	    KTRT_WORKERS => 1, UMT_BACKEND => 'none', HWLOC_XMLFILE => 'x',
	    KTASK_TEST_SEED => 7, KTASK_BUILD => '/somewhere');
SKIP: {
	skip 'no bats', 1 if system('command -v bats >/dev/null');
	local @ENV{keys %told} = values %told;
	my ($status, $said) = capture("bats --formatter tap $dir/test.bats 2>&1");
	is($status, 0, 'and what the user exported is gone') or diag($said);
}

done_testing();
