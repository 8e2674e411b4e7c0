#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Installs the wheel into a virtual environment under build/, as pip does it anywhere,
# and runs the tests of the Python package there.  Where a package index can be reached
# they have its numpy, else the system's, or none.  `make check-torch` names one that
# it has made, with torch.
#
# pip is run by the environment's own Python: bin/pip names the one that it was made
# with, which in a copied tree is that of the other.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my ($wheel) = glob "$build/python/ktask-*.whl";
my $torch = $ENV{KTASK_TEST_TORCH};
my $env = $torch // "$build/python/env";
my $tests = "$top/ktask/bindings/python/tests";
my $wanted = "$tests/../requirements.txt";

plan skip_all => 'no Python.h: make deps NEED=bindings' if !$wheel;

# A first attempt that was interrupted leaves one without its mark.
sub make_environment
{
	my ($status, $said) = capture("rm -rf $env && python3 -m venv "
		. "--system-site-packages $env");

	plan skip_all => 'no venv: make deps NEED=bindings' if $status;
	($status, $said) = capture("timeout 120 $env/bin/python -m pip "
		. "--no-input --disable-pip-version-check install -q --retries 1 --timeout 10 "
		. "-r $wanted && cp $wanted $env/complete");
	diag("the index cannot be reached: $said") if $status;
}

make_environment() if !$torch && capture("cmp $wanted $env/complete");
my ($status, $said);
if ($torch) {
	($status, $said) = capture("$env/bin/python -c 'import torch; "
		. "print(torch.__version__)'");
	chomp $said;
	is($status, 0, "there is a torch: $said");
}
($status, $said) = capture("$env/bin/python -m pip "
	. "--disable-pip-version-check install -q --no-index --no-deps --force-reinstall $wheel");
is($status, 0, 'pip installs the wheel') or diag($said);

($status) = capture("$env/bin/python -c 'import pytest'");
SKIP: {
	skip 'no pytest: make deps NEED=bindings', 1 if $status;
	chdir '/';
	$ENV{KTASK_WHEEL} = $wheel;
	($status, $said) = capture("$env/bin/python -B -m pytest -rA --tb=short "
		. "-p no:cacheprovider --color=no $tests");
	is($status, 0, 'all tests together') or diag($said);
	for (split /\n/, $said) {
		my ($word, $name) = /^(PASSED|FAILED|ERROR|SKIPPED) (.+)$/ or next;

		$name =~ s{\S*/}{};
		if ($word eq 'SKIPPED') {
			my ($why) = $name =~ /: (.*)/;

			SKIP: { skip $why // $name, 1; }
		} else {
			ok($word eq 'PASSED', $name);
		}
	}
}

done_testing();
