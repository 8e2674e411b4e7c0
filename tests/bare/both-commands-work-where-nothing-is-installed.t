#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What the README promises of a fresh Debian 12: `make demo` works, and what
# `make check` installs is enough to build and run its tests.  One test of each
# kind is run; `make check-bare` runs all.
#
# All that `make check` builds is compiled, with each sanitizer too, and no header that any
# test names may be missing.  What no demo needs is compiled without optimising, which halves
# the time: a missing header or library shows all the same.  Objects are never taken from the
# tree outside: these would hide a missing header.  One guest is booted, where its kernel is
# or can be fetched; the others and the packages of ktask/tests/software are left to
# check-bare.
# The crates are in neither: their registry is out of reach from the bare machine.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

use constant LIMIT => 1700;	# seconds; less than tests/special allows

my $cache = $ENV{KTASK_TEST_BARE_CACHE} // "$build/bare";
# One of each kind that is compiled, and with a sanitizer.
my %compiled = ('tests/unit/job-keeps-the-first-error' => 'asan',
		'tests/api/every-unit-is-done-once' => 'tsan',
		'tests/umt/why-not-is-told-in-a-line' => 'asan',
		'tests/runtime/codes-reach-whoever-waits' => 'tsan');
my @sanitized = map { "build/$compiled{$_}/$_" } sort keys %compiled;
my %directory = (unit => 'ktask/tests/unit', sim => 'ktask/tests/sim',
		 api => 'ktask/tests/api', umt => 'umt/tests',
		 runtime => 'ktrt/tests/runtime');
my $simulated = 'build/tests/sim/jobs-keep-their-promises-in-any-schedule';
my @tests = ((map { "build/$_" } sort keys %compiled), @sanitized,
	     $simulated, qw(ktask/tests/cli/usage-errors-exit-2.bats
		ktask/tests/preload/programs-run-unchanged.bats
		ktask/tests/bindings/the-wheel-passes-its-tests.t
		ktask/tests/software/the-shell-sees-no-difference.bats
		umt/tests/command-says-which-backend.bats
		ktrt/tests/apps/wrong-usage-is-told.bats
		tests/build/headers-stand-alone.t
		tests/style/manual-pages-are-clean.t
		tests/runner/a-guests-complaints-are-told-apart.t
		build/examples/lock build/examples/runtime/sort));

my @guest_tools = qw(qemu-system-x86_64 cpio objcopy objdump strip patch tar xz zstd lz4);

# There is no network where the script runs.
my $vm = $ENV{KTASK_TEST_VM_CACHE} || "$build/vm";
my $fetch = "$top/tests/vm/fetch";
my ($no_kernel, $why) = capture("$fetch-qemu '$vm' && $fetch '$vm' 6.12");
my $guest = $no_kernel ? '' : 'tests/vm/ktask-works-on-linux-6.12.t one';
$ENV{KTASK_TEST_VM_CACHE} = $no_kernel ? '' : $vm;

# Each of its own: some want another one before them.
my $headers = join ' ', do {
	my %named;

	for my $file (map { glob "$top/$_/*.[ch] $top/$_/support/*.h" }
		      values %directory, 'tests/support') {
		$named{$_} = 1 for slurp($file) =~ /^#\s*include <(\S+)>/mg;
	}
	sort grep { !m{^(?:ktask|uapi)/|^umt\.h$} } keys %named;
};

my $quick = "CFLAGS='-O0 -g0'";

# Each step says when it begins, and the CPU time so far: the last one named has failed.
my $script = <<"END";
step() { echo "== \$1"; times; }
step demo
make demo SIZE=256M RUNS=1
step deps
make deps
step tools
for tool in @guest_tools; do command -v \$tool || exit 1; done
step headers
for header in $headers; do
	echo "#include <\$header>" | cc -E -o /dev/null - || exit 1
done
step build
make -j2 $quick tests
step features
make $quick features
step run
tests/run --excused tests/bare/excused --build build @tests
step guest
KTASK_TEST_ONLY=module $guest
step end
END

# As a run that was killed leaves it.
my $left = "$cache/bookworm/run.killed";
system('mkdir', '-p', $left) == 0 or die;

my $file = spew(scratch() . '/script', $script);
my ($status, $said) = capture('timeout ' . LIMIT
	. " $FindBin::Bin/root '$cache' \"\$(cat $file)\"");
if ($status == 77) {
	$said =~ s/.*\n(?=.)//s;
	chomp $said;
	plan skip_all => $said;
}
my $times = qr/(?:\d+m[\d.]+s ?){2}\n/;
my (%said, $step, $seconds);

for (split /^== /m, "start\n$said") {
	/^(\w+)\n(?:$times(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n)?(.*)/s or next;
	if (defined $2) {
		my $now = 60 * ($2 + $4) + $3 + $5;

		note(sprintf '%s: %.1f s of CPU time', $step, $now - $seconds)
			if defined $seconds;
		$seconds = $now;
	}
	$step = $1;
	$said{$step} = $6;
}

# Only the end of what a step said is shown.
sub step_passes
{
	my ($step, $next, $what) = @_;

	return if ok(defined $said{$next}, $what);
	diag("status $status: ", substr($said{$step} // '', -4000));
}

step_passes('start', 'demo', 'a root is made');
ok(!-e $left, 'what a killed run has left is removed');
step_passes('demo', 'deps', 'make demo works');
like($said{demo} // '', qr/^  ktask run -- qemu-system-x86_64 +-  +/m,
     'and prints what it measured');
step_passes('deps', 'tools', 'make deps works');
step_passes('tools', 'headers', 'what makes guests is there');
step_passes('headers', 'build', 'so are all headers that tests name');
step_passes('build', 'features', 'what make check builds is built');
unlike($said{build} // '', qr/Left out/, 'nothing is left out');
unlike($said{features} // '', qr/^(?!taskflow)\w+\s+no$/m, 'all features are there');
step_passes('run', 'guest', 'one test of each kind passes');
ok(($said{run} // '') =~ /^[1-9]\d* passed, 0 failed, /m, 'and is counted');
unlike($said{run} // '', qr/^failed: skipped without an excuse/m,
       'none skips for want of packages');
SKIP: {
	skip((split /\n/, $why)[-1], 2) if $no_kernel;
	step_passes('guest', 'end', 'and one guest');
	like($said{guest} // '', qr/^ok \d+ - one node: the guest comes to its end$/m,
	     'which is booted');
}

done_testing();
