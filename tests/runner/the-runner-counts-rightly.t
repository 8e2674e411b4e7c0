#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Shows tests/run programs that fail, skip, crash, hang and lie, and reads
# its closing line.  A runner that can be fooled makes every other test void.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dir = scratch();
my $fixture = "$dir/fixture";
my ($status, $said) = capture("$cc -std=gnu11 -D_GNU_SOURCE -I$top/tests/support "
	. "-o $fixture $top/tests/runner/fixture.c "
	. "$top/tests/support/ktest.c -lcmocka");
is($status, 0, 'the fixture compiles') or BAIL_OUT($said);

# Once each, but where it is told otherwise.
$ENV{KTASK_TEST_REPEAT} = 0;

# Seconds for each program, enough on a busy machine; what hangs is given fewer.
my $limit = 60;

# [exit status, closing line, whole report]
sub run_tests
{
	my ($options, @programs) = @_;
	my ($status, $report) =
		capture("$top/tests/run --limit $limit --build $dir/none "
			. "--special $dir/special $options @programs");

	my ($last) = $report =~ /([^\n]*)\n\z/;
	return ($status, $last // '', $report);
}

sub script
{
	my ($name, $text) = @_;

	return spew("$dir/$name", "#!/bin/sh\n$text\n", 0755);
}

sub counts
{
	my ($what, $program, $pass, $fail, $skip, $also) = @_;
	my ($status, $last, $report) = run_tests('', $program);

	is($last, "$pass passed, $fail failed, $skip skipped", $what)
		or diag(substr($report, 0, 2000));
	is($status, $fail ? 1 : 0, "$what: exit status");
	like($report, $also, "$what: report") if $also;
}

sub hangs
{
	$limit = 2;
	counts(@_);
	$limit = 60;
}

sub cmocka
{
	my ($way, @expected) = @_;

	counts("cmocka: $way", script($way, "exec $fixture $way"), @expected);
}

cmocka('pass_at_once', 3, 0, 0);
cmocka('fail_plainly', 2, 1, 0, qr/0x1 != 0x2/);
cmocka('fail_with_words', 2, 1, 0, qr/words of failure/);
cmocka('skip_with_reason', 2, 0, 1, qr/^ +1  there is no reason\n +\S+ \(way\)$/m);
cmocka('skip_silently', 2, 0, 1, qr/^ +1  no reason given\n +\S+ \(way\)$/m);
cmocka('touch_nothing', 2, 1, 0, qr/Segmentation fault/);
cmocka('abort_now', 1, 2, 0, qr/killed by signal 6/);
cmocka('leave_early', 1, 2, 0, qr/2 of 3 tests did not run/);
cmocka('leave_silently', 1, 2, 0, qr/2 of 3 tests did not run/);
hangs('cmocka: hang_forever', script('hang', "exec $fixture hang_forever"), 1, 2, 0,
      qr/no end within 2 s/);
cmocka('leave_a_child', 3, 1, 0, qr/left processes behind/);
cmocka('fork_and_return', 3, 0, 0);
cmocka('setup', 0, 1, 0, qr/setup failed/);
cmocka('teardown', 0, 1, 0, qr/teardown failed/);
cmocka('group_setup', 0, 2, 0, qr/group setup failed/);
cmocka('group_teardown', 1, 1, 0, qr/group teardown failed/);
cmocka('two_groups', 2, 1, 0, qr/More than one plan/);

counts('exit 0', script('zero', 'exit 0'), 1, 0, 0);
counts('exit 1', script('one', 'echo why; exit 1'), 0, 1, 0, qr/^why$/m);
counts('exit 77', script('skip', 'echo no device; exit 77'), 0, 0, 1,
       qr/^skipped, needs another machine[^\n]*: 1\n +1  no device\n +\S+$/m);
counts('a signal', script('signal', 'kill -9 $$'), 0, 1, 0,
       qr/killed by signal 9/);
hangs('a hang', script('sleeps', 'exec sleep 90'), 0, 1, 0,
      qr/no end within 2 s.*^failed: \S+sleeps: no end within 2 s$/ms);
hangs('a hang that ignores signals',
      script('stubborn', "trap '' TERM INT; sleep 60; sleep 60"), 0, 1, 0);
counts('a process left behind', script('leaver', 'sleep 60 & exit 0'), 1, 1, 0,
       qr/left processes behind/);
counts('no such program', "$dir/absent", 0, 1, 0, qr/cannot run/);

counts('TAP', script('tap', 'printf "1..2\nok 1\nok 2\n"'), 2, 0, 0);
counts('TAP without a plan', script('planless', 'echo ok 1'), 1, 1, 0);
counts('TAP beyond its plan',
       script('beyond', 'printf "1..1\nok 1\nok 2\n"'), 2, 1, 0);
counts('TAP that is true but for its exit status',
       script('liar', 'printf "1..1\nok 1\n"; exit 3'), 1, 1, 0,
       qr/exit status 3/);
counts('TAP on standard error only',
       script('stderr', 'printf "1..1\nnot ok 1\n" >&2'), 1, 0, 0);
counts('TAP that bails out',
       script('bail', 'printf "1..2\nok 1\nBail out!\n"'), 1, 2, 0);
counts('TAP that skips all',
       script('skipall', 'echo "1..0 # SKIP not here"'), 0, 0, 1,
       qr/^skipped, [^\n]*: 1\n +1  not here\n/m);
counts('TAP that skips twice for one reason',
       script('twice', 'printf "1..2\nok 1 # SKIP no\nok 2 # SKIP no\n"'),
       0, 0, 2, qr/^skipped, [^\n]*: 2\n +2  no\n +\S+twice\n/m);
counts('a test that is to be done is a failure',
       script('todo', 'printf "1..1\nnot ok 1 # TODO later\n"'), 0, 1, 0);
counts('endless output', script('flood', 'exec yes'), 0, 1, 0,
       qr/\n\[\.\.\.\]\n.*too much output/s);

SKIP: {
	skip 'no bats', 2 unless have('bats');
	spew("$dir/three.bats", <<'BATS');
@test "good" { true; }
@test "bad" { false; }
@test "absent" { skip "not today"; }
BATS
	counts('bats', "$dir/three.bats", 1, 1, 1);
}

# Several programs, in parallel and alone.
# Who finds the directory taken says so; who has it waits for that, as long as is told:
# until it comes where two run at once, for a while where they must not.
my @pair = map { script("pair$_", "echo 1..1; mkdir $dir/alone || {"
	. " touch $dir/met; echo not ok 1; exit; }\n"
	. "for i in \$(seq \$(cat $dir/patience)); do\n"
	. "[ ! -e $dir/met ] || break; sleep 0.05\ndone\n"
	. "rmdir $dir/alone; echo ok 1") } 1, 2;

# run_pair(PATIENCE, ARGUMENT...): how often who has it looks, each 0.05 s
sub run_pair
{
	my ($patience, @arguments) = @_;

	unlink "$dir/met";
	spew("$dir/patience", $patience);
	return run_tests(@arguments);
}

use constant AT_ONCE => 1200;
use constant BY_TURNS => 12;

($status, my $last) = run_pair(AT_ONCE, '--jobs 2', @pair);
is($last, '1 passed, 1 failed, 0 skipped', 'two programs run at once');
spew("$dir/special", "*/pair* serial # each wants the directory for itself\n");
($status, $last) = run_pair(BY_TURNS, '--jobs 2', @pair);
is($last, '2 passed, 0 failed, 0 skipped', 'serial programs run alone');
is($status, 0, 'and the exit status is 0');

spew("$dir/special", "*/pair* shares=directory # each wants it for itself\n");
($status, $last) = run_pair(BY_TURNS, '--jobs 2', @pair);
is($last, '2 passed, 0 failed, 0 skipped', 'sharing programs take turns');
spew("$dir/special", "*/pair* shares=directory:2 # two of them are too many\n");
($status, $last) = run_pair(AT_ONCE, '--jobs 2', @pair);
is($last, '1 passed, 1 failed, 0 skipped', 'as many at once as are allowed');

spew("$dir/special", "*/nap seconds=1 # so that this test is short\n");
(undef, undef, my $report) = run_tests('--limit 60', script('nap', 'sleep 9'));
like($report, qr/no end within 1 s/, 'a test may have its own limit');
spew("$dir/special", "*/pair* shares=directory,seconds=60 # two things\n");
($status, $last) = run_pair(BY_TURNS, '--jobs 2 --limit 1', @pair, script('slow', 'sleep 9'));
is($last, '2 passed, 1 failed, 0 skipped', 'a rule may say that tests take turns,');
spew("$dir/special", "*/nap shares=directory,seconds=1 # two things\n");
(undef, undef, $report) = run_tests('--limit 60', script('nap', 'sleep 9'));
like($report, qr/no end within 1 s/, 'and give them a limit');
spew("$dir/special", "*/pair* seconds=60,serial # two things\n");
($status, $last) = run_pair(BY_TURNS, '--jobs 2', @pair);
is($last, '2 passed, 0 failed, 0 skipped', 'or run them alone');

# Each waits until three are there, which takes no time if that may be.
sub meeting
{
	my ($options, $rule, $seconds) = @_;
	my @three = map { script("meets$_", "touch $dir/met.$_\n"
		. "for i in \$(seq " . 20 * $seconds . "); do\n"
		. "[ \$(ls $dir/met.* | wc -l) -lt 3 ] || exit 0; sleep 0.05\ndone\n"
		. "rm $dir/met.$_; exit 1") } 1 .. 3;

	spew("$dir/special", "*/meets* $rule # how many of them meet\n");
	(undef, my $last) = run_tests("--limit 60 $options", @three);
	unlink glob "$dir/met.*";
	return $last;
}

is(meeting('--jobs 2', 'half', 30), '3 passed, 0 failed, 0 skipped',
   'what waits takes half a place');
is(meeting('--jobs 2', 'half,shares=place:2', 1), '0 passed, 3 failed, 0 skipped',
   'and no more of it run at once than may');
is(meeting('--jobs 2', 'seconds=60', 1), '0 passed, 3 failed, 0 skipped',
   'all else takes a place');
is(meeting('--jobs 1', 'half', 1), '0 passed, 3 failed, 0 skipped',
   'one job is one program');
is(meeting('--jobs 2', 'half,serial', 1), '0 passed, 3 failed, 0 skipped',
   'and what runs alone does so');

# Each has its own where it may mount one; here nobody can.
spew("$dir/bin/unshare", "#!/bin/sh\nexit 1\n", 0755);
{
	local $ENV{PATH} = "$dir/bin:$ENV{PATH}";

	spew("$dir/special", '');
	($status, $last) = run_pair(BY_TURNS, '', @pair);
	is($last, '2 passed, 0 failed, 0 skipped', 'who shares /dev/shm runs alone');
}
SKIP: {
	skip 'no mount namespaces', 1
		if system('unshare --mount true 2>/dev/null') != 0;
	(undef, $last) = run_pair(AT_ONCE, '--jobs 2', @pair);
	is($last, '1 passed, 1 failed, 0 skipped', 'who has its own does not');
}
for my $wrong ('serial', 'serial,nonsense # why', 'serial, # why',
	       'seconds= # why', ',serial # why', '# why') {
	spew("$dir/special", "*/nap $wrong\n");
	($status) = run_tests('', "$dir/zero");
	isnt($status, 0, "a special rule is refused: $wrong");
}
unlink "$dir/special";

# Where the time goes.
spew("$dir/kinds/one/a", "#!/bin/sh\nexit 0\n", 0755);
spew("$dir/kinds/two/$_", "#!/bin/sh\nexit 0\n", 0755) for qw(b c);
spew("$dir/made", "75\n0m0.010s 0m0.020s\n2m1.500s 0m20.250s\n");
(undef, undef, $report) = run_tests("--made $dir/made --build $dir/kinds",
				    glob "$dir/kinds/*/*");
like($report, qr/^ +75\.0 +141\.8  what was made before the tests\n +[\d.]+ +-?[\d.]+  tests\n/m,
     'what was made before is told in seconds, and of CPU time');
like($report, qr/^ +-?[\d.]+  two \(2\)$/m, 'and each kind of tests');
unlike($report, qr/once more/, 'nothing was run again');
like($report, qr/^of [1-9]\d* CPUs \d+\.\d\d were busy; minute by minute \d+\.\d$/m,
     'and how many CPUs were busy');
spew("$dir/made", "75\n");
(undef, $last, $report) = run_tests("--made $dir/made", "$dir/zero");
is($last, '1 passed, 0 failed, 0 skipped', 'what cannot be understood is not told');
unlike($report, qr/made before/, 'and is no error');

# Skips are told in groups of what their reasons are about.
my $reasons = <<'END';
# not possible under a sanitizer
TSAN has no threads after fork
thread sanitizer: no threads after a fork
sanitizers need stack of their own
no user namespaces under the thread sanitizer
clang has no thread sanitizer
# left to another check
make check-kernel runs it
linux-6.12-kasan is not built: make check-vm-debug
not built: make kernel-6.12
no torch: make check-torch
no source of LTP: make check LTP_SOURCE=DIRECTORY
no source of LTP: LTP_SOURCE=DIRECTORY
not built: make check TASK_BENCH=DIR does that
# the machine was too busy
no helper got a CPU
no helper got a CPU in time
no helper got a CPU before
no helper came
no helper came: the CPUs are busy
no helper came to the long job
no helper in 50 jobs
no helper was late
no two helpers came at once
no helper of a helper came
too few helpers at once
others use all CPUs
the watcher got no CPU
no CPU idled
no CPU was idle, so no helper came
helpers get no CPU in time here: 2 did
helpers began later than they may end
the machine is too busy for a helper
chunks take too long on a machine this busy
other processes held trials up
naps are over before they begin here
somebody else always gets the number first
no core for the other worker, or no trifles here
the other worker got no core for it
the machine takes pages back all the time
no job was held beside a helper
no process was killed that held a permit
# needs another machine (CPUs, nodes, devices)
one CPU
one CPU: no job has helpers
fewer than four CPUs
fewer than two nodes have CPUs
a machine of one node
no node has memory only
no core of this machine has two threads
no huge pages
no free huge pages
cannot make huge pages
too few huge pages
no device for it
no GPU
no libcudart
too many CPUs to keep all of them busy
this process may not use all CPUs
torch has no GPU here
too little memory
no class of power supplies
not x86
one thread here
a job gets one thread here: it has no entry
a job gets 1 threads here
the child may have no helper
one worker shares with nobody
no workers are to be had here
# needs a right that is not there
not root
needs root
only root may run umtd
only root may mount a small disk
root may read everything
no right to mount
no right to lock so much memory
locking is not permitted
locked memory is limited to 64 KiB
mlock is refused: [Errno 12] Cannot allocate memory
strace may not trace
no thread may be raised
nothing may be mounted
no program may be loaded
others cannot reach the directory of the tests
# needs a program that is not installed or not built
no strace
no setpriv
no readelf
no gnuplot
no mpirun
no su
no go
no qemu-system-x86_64
no systemd-socket-activate
no qemu-system-x86_64: make deps NEED=demo
no redis-server: make deps NEED=software
no PostgreSQL: make servers
no nginx: make servers
no NumPy: make deps NEED=software
no Python.h: make deps NEED=bindings
no Graphviz to read it
no C++ compiler
no compiler
no static C library
no xz here
no aarch64-linux-gnu-gcc
no auditwheel
no numpy
no systemd
mandoc is not here
cargo cannot fetch crates: no network
not built
not built: no go here
the shim is not built
built without eBPF
built without MPI
built without <sys/sdt.h>
without eBPF nothing is loaded
scx_ktask is not built: no clang or libbpf
not built: make heat-peers builds it
# needs a feature of the kernel or its configuration
no userfaultfd
no userfaultfd: Function not implemented
no io_uring
no io_uring is to be had: Function not implemented
no tmpfs
no sysfs
no debugfs
no /proc
no /dev/full
no namespaces
no mount namespaces
no PID namespace
no control group can be made
control groups do not limit memory
groups know no peak
groups get no CPU quota here
no seccomp filters here
this kernel refuses uprobes
the kernel has no guard pages (6.13)
no hugetlbfs to mount
no memory policies
no binfmt_misc in a user namespace
no move_pages() here
no perf here
the file system has no direct reads
no file may be so long
the module is loaded
UMT's backend is poll
no eBPF here: the kernel has no BTF
# for another reason
not today
one is installed
no reason given
linked statically
END
my ($group, @reasons, %expected, %told);

for (split /\n/, $reasons) {
	if (/^# (.+)/) {
		$group = $1;
	} else {
		push @reasons, $_;
		$expected{$_} = $group;
	}
}

# skipping NAME REASON...: a program with that many tests
sub skipping
{
	my ($name, @reasons) = @_;

	return script($name, join "\n", "cat <<'END'", '1..' . @reasons,
		      (map { 'ok ' . ($_ + 1) . " # SKIP $reasons[$_]" } 0 .. $#reasons),
		      'END');
}

my $skips = skipping('skips', @reasons);
(undef, $last, $report) = run_tests('', $skips);
is($last, '0 passed, 0 failed, ' . @reasons . ' skipped', 'all of them are counted');
my @headings = $report =~ /^skipped, (.+): \d+$/mg;
is_deeply([sort @headings], [sort keys %{ { reverse %expected } }], 'each group is told once');
for (split /\n/, $report) {
	if (/^skipped, (.+): \d+$/) {
		$group = $1;
	} elsif (/^ +1  (.+)/) {
		$told{$1} = $group;
	}
}
is_deeply(\%told, \%expected, 'each reason in its own');

# Where all can be installed, what is not must be excused; nothing else need be.
spew("$dir/excused", "# comment\nno go\nnot built: no .+\n");
$skips = skipping('wanting', 'no go', 'not built: no go here', 'no gopher', 'a module is missing',
		  'one CPU', 'no helper came');
($status, $last, $report) = run_tests("--excused $dir/excused", $skips);
is($last, '0 passed, 1 failed, 6 skipped', 'what is not installed is a failure');
is_deeply([$report =~ /^failed: skipped without an excuse: (.+)$/mg], ['no gopher'],
	  'unless a line excuses it');
is($status, 1, 'so says the exit status');
($status) = run_tests("--excused $dir/none-there", $skips);
isnt($status, 0, 'excuses that cannot be read are an error');

# What may be noise is run again.
{
	local $ENV{KTASK_TEST_REPEAT};
	my $once = sub {
		my ($name, $failure) = @_;

		return script($name, "mkdir $dir/$name.seen && { $failure; }; exit 0");
	};

	delete $ENV{KTASK_TEST_REPEAT};
	counts('a test that fails once', $once->('shaky', 'echo cause; exit 1'),
	       1, 0, 0, qr/shaky, at first\ncause\n.*^shaky: .*shaky failed at/ms);
	spew("$dir/kinds/two/d", "#!/bin/sh\n! mkdir $dir/d.seen\n", 0755);
	(undef, undef, my $said) = run_tests("--build $dir/kinds", glob "$dir/kinds/*/*");
	like($said, qr/^ +[\d.]+ +-?[\d.]+  of them once more, alone, what failed$/m,
	     'what running again takes is told');
	counts('one that fails twice', script('false', 'exit 1'), 0, 1, 0,
	       qr/^failed: \S+false: exit status 1$/m);
	counts('one with a reason', script('reason',
	       'printf "1..1\nnot ok 1 - claim\n# 1 != 2\n"; exit 1'), 0, 1, 0,
	       qr/^not ok 1 - \S*reason: claim: 1 != 2$/m);
	counts('a sanitizer is believed', $once->('asan',
	       'echo ERROR: AddressSanitizer: leak; exit 99'), 0, 1, 0);
	counts('what a sanitizer found is told', script('tsan', 'echo 1..1; echo'
	       . ' SUMMARY: ThreadSanitizer: data race a.c:1 in f; exit 99'), 0, 1, 0,
	       qr/^failed: .*: 1 of 1 tests did not run, exit status 99; ThreadSanitizer: data race/m);
	counts('a crash is believed', $once->('crash', 'kill -SEGV $$'), 0, 1, 0);
	counts('a kernel is believed', $once->('kernel', 'echo 1..1; echo "not ok 1'
	       . ' - one node: the kernel complains of nothing"; exit 1'), 0, 1, 0);
	# Two guests; the second time only the one that failed, if it is asked for so.
	spew("$dir/again.pl", <<'END');
use Again;
my $failed = failed_parts(qw(one two));
my @pairs = map { "$_=@{ $failed->{$_} }" } sort keys %$failed;
print "@pairs" eq 'two=c (1 failed)' ? "# right\n" : "# wrong: @pairs\n";
END
	my $parts = sub {
		my ($name, $second) = @_;

		return script($name, <<END);
mkdir $dir/$name.seen && {
	printf 'ok 1 - one: a\\nok 2 - one: b # SKIP no\\n'
	printf 'not ok 3 - two: c (1 failed)\\n1..3\\n'
	exit 1
}
perl -I$top/tests/support $dir/again.pl
$second
END
	};
	counts('only what failed is repeated', $parts->('parts',
	       'echo "ok 1 - two: c"; echo 1..1'), 2, 0, 1, qr/^shaky: .*parts failed/m);
	counts('and may fail again', $parts->('twice_parts',
	       'echo "not ok 1 - two: c"; echo 1..1; exit 1'), 1, 1, 1, qr/^# right$/m);
	counts('a random test is repeated with its seed', script('random',
	       'test "$KTASK_TEST_SEED" != 77 || exit 0' . "\n"
	       . 'echo "# seed: KTASK_TEST_SEED=77"; exit 1'), 1, 0, 0,
	       qr/^shaky: .*random failed/m);
	$ENV{KTASK_TEST_AGAIN} = 'anything';
	counts('nobody else asks for that', script('unasked',
	       'test -z "$KTASK_TEST_AGAIN"'), 1, 0, 0);
	delete $ENV{KTASK_TEST_AGAIN};
	($status, my $last) = run_tests('', map {
		$once->("many$_", 'exit 1') } 1 .. 5);
	is($last, '0 passed, 5 failed, 0 skipped', 'many failures are no noise');
}

# The tests' surroundings.
$ENV{"${_}ANYTHING"} = 1 for qw(KTASK_ KTRT_ UMT_);
$ENV{KTASK_TEST_SEED} = 7;
counts('only KTASK_TEST_ variables reach a test',
       script('environment', 'test -z "$KTASK_ANYTHING$KTRT_ANYTHING$UMT_ANYTHING" -a '
	      . '"$KTASK_TEST_SEED" = 7 -a -d "$TMPDIR"'), 1, 0, 0);

($status) = capture("$top/tests/run");
isnt($status, 0, 'no program at all is an error');

done_testing();
