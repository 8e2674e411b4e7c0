# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Tests of the library that need a machine of their own, in guests.
#
#   test_programs(NAME, SHAPE...)	boots that kernel (tests/vm/kernels) on
#					machines of these shapes
#
# Programs are those of tests/vm/user, in C or for the shell, and of the others
# the ones that tests/vm/user/also names.  They and the libraries that they need
# are packed into the initial file system, with the shim and programs for it;
# tests/vm/programs/init.c runs them one after the other and passes on what they
# say, which is judged as tests/run would.
#
# 6.12 runs them all, 7 all of UMT, whose programs of eBPF 6.12 does not run.  On 6.1, and
# otherwise on 7, those that tests/vm/user/every-kernel names run each day, the others every
# third day (support/Sample.pm); all do where shapes or programs are chosen.
#
# Before them runs scripts/record-topology: what it prints must be the recorded
# machine tests/topologies/guest-SHAPE, and is left in guests/NAME/SHAPE.topology.
#
# On a slow machine programs outlive the second after which the kernel marks pages for
# balancing, and of such pages Linux 6.0 to 6.5 say that they are on no node: 6.1 does
# not balance.
#
# Needs no module, and so neither headers nor any right.

package Programs;

use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(basename dirname);
use FindBin;
use lib "$FindBin::Bin/../support";
use Again;
use Guest qw(emulates fetch_kernel finish make_archive nodes result run_guest);
use House;
use Sample;
use Verdict;

our @EXPORT = qw(test_programs);
our @EXPORT_OK = qw(pack_programs pass_on programs_of_the_day);

# What runs there, words for the kernel, and the machine: cores with two threads
# each; two nodes; and four nodes, of which one has memory that can be taken away
# and no CPU, and one CPUs only.
my %shapes = (
	threads => [qr{/user/c(?:ores|lock)}, '', '-smp', '4,sockets=1,cores=2,threads=2',
		'-m', 512],
	two => [qr{^(?!.*(?:cores-come|/umt/))}, '',
		'-smp', '4,sockets=2,cores=2', '-m', 768,
		nodes(['0-1', '2-3'], [384, 384], [10, 20], [20, 10])],
	# Programs of eBPF come and go, which changes the kernel's code under the
	# feet of its CPUs: QEMU's own then trip now and then, unless they take
	# turns.
	umt => [qr{/umt/}, '', '-smp', '4,sockets=4', '-m', 768,
		'-accel', 'tcg,thread=single'],
	eight => [qr/^$/, '', '-smp', '8,sockets=8', '-m', 1024,
		nodes([0 .. 7], [(128) x 8], map {
			my $from = $_;
			[map { $from == $_ ? 10 : $from >> 1 == $_ >> 1 ? 12
				: $from >> 2 == $_ >> 2 ? 20 : 32 } 0 .. 7]
		} 0 .. 7)],
	four => [qr{node|policy|(?:api|user)/.*cpus}, '',
		'-smp', '6,sockets=3,cores=2', '-m', '640,slots=1,maxmem=2G',
		nodes(['0-1', '2-3', '4-5', ''], [320, 320, 0, 0],
		      [10, 20, 20, 30], [20, 10, 30, 15], [20, 30, 10, 20],
		      [30, 15, 20, 10]),
		'-object', 'memory-backend-ram,id=dimm,size=256M',
		'-device', 'pc-dimm,memdev=dimm,node=3'],
);

sub programs
{
	my ($wanted, $again) = @_;
	my @names = map { basename($_, '.c') } glob "$top/tests/vm/user/*.c";
	my @paths = map { "$build/tests/vm/user/$_" } @names;

	push @paths, map { "$top/tests/vm/user/" . basename($_) }
		glob "$top/tests/vm/user/*.sh";

	for (split /\n/, slurp("$top/tests/vm/user/also")) {
		push @paths, "$build/tests/$1" if /^([^#\s]\S*)/;
	}
	@paths = grep { $_ =~ $wanted
			&& $_ =~ ($ENV{KTASK_TEST_PROGRAM} // qr/./) } @paths;
	@paths = grep { $again->{basename($_)} } @paths if $again;
	# Which is not built without the tools for eBPF.
	@paths = grep { !m{/umtd-} } @paths unless -x "$build/umtd";
	for (@paths) {
		-x or die "$_ is not built\n";
	}
	return @paths;
}

# programs_of_the_day(NAME, SHAPE, PATH...): those that run on that kernel today
sub programs_of_the_day
{
	my ($name, $shape, @paths) = @_;

	return @paths if $name eq '7' && $shape eq 'umt';
	my %everywhere = map { /^([^#\s]\S*)/ ? ($1 => 1) : () }
		split /\n/, slurp("$top/tests/vm/user/every-kernel");
	my @others = grep { !$everywhere{basename($_)} } @paths;
	my %today = map { $_ => 1 } third_of_the_day($name, 0, @others);

	return grep { $everywhere{basename($_)} || $today{$_} } @paths;
}

# The shared libraries of some programs, and the loader.
sub libraries_of
{
	my (undef, $said) = capture('ldd ' . join ' ', grep { !/\.sh$/ } @_);
	my %seen = map { $_ => 1 } $said =~ m{(/\S+) \(0x}g;

	return sort keys %seen;
}

# pack_programs(DIR, COMMANDS, TOOLS, PATH...): an initial file system of these tests,
# of PID 1, and of tools for them, with what they need; COMMANDS put more into it.
sub pack_programs
{
	my ($dir, $more, $others, @paths) = @_;
	my @tools = (qw(/bin/sh /bin/cat /bin/ls /bin/grep /bin/sleep /usr/bin/wc
			/usr/bin/diff), "$build/libktask-preload.so", @$others);
	my $commands = "mkdir -p $dir/initrd/tests $dir/initrd/bin\n"
		. "$cc -O2 -Wall -Wextra -Werror -static "
		. "-o $dir/initrd/init tests/vm/programs/*.c\n"
		. "cp -L @tools $dir/initrd/bin\n"
		. "cp tests/vm/programs/same.sh $dir/initrd/bin\n"
		. "[ -z '@paths' ] || cp @paths $dir/initrd/tests\n"
		. "for program in @paths; do\n"
		. "case \$program in *.sh) continue ;; esac\n"
		. "strip --strip-debug $dir/initrd/tests/\${program##*/}\ndone\n";

	for my $library (libraries_of(@tools, @paths)) {
		my $directory = "$dir/initrd" . dirname($library);
		$commands .= "mkdir -p $directory && cp -L $library $directory\n";
		# The C library loads it by itself when a thread ends early.
		$commands .= "cp -L \$($cc -print-file-name=libgcc_s.so.1) "
			. "$directory\n" if $library =~ m{/libc\.so};
	}
	return make_archive($dir, $commands . $more);
}

sub make_initrd
{
	my ($dir, @paths) = @_;
	my @tools = (grep({ -x } "$build/umtd"), map { "$build/tests/preload/$_" }
		qw(ahead-cases ahead-told-cases huge-cases policy-cases random-cases));

	# A test mounts its own users over the file.
	return pack_programs($dir, <<END, \@tools, @paths);
cp scripts/record-topology $dir/initrd/tests/0-topology
mkdir -p $dir/initrd/etc
touch $dir/initrd/etc/subuid
END
}

sub say_verdict
{
	my ($shape, $test, $seconds) = @_;
	my $counted;

	judge($test);
	$counted = "$test->{pass} passed, $test->{fail} failed";
	result(!$test->{fail}, "$shape: $test->{name} ($counted, $seconds s)");
	print map { "# $_\n" } @{ $test->{problems} // [] };
	print map { "#  $_\n" } split /\n/, $test->{log} if $test->{fail};
	for my $skip (@{ $test->{skips} // [] }) {
		my ($what, $why) = @$skip;
		result(1, "$shape: $test->{name}: $what # SKIP $why");
	}
}

# Newer kernels tell more.
sub compare_topology
{
	my ($dir, $shape, $test) = @_;
	my $recorded = "$top/tests/topologies/guest-$shape";
	my %now = map { $_ => 1 } split /\n/, $test->{out};
	my @lines = -e $recorded ? split /\n/, slurp($recorded) : '/nothing';

	spew("$dir/$shape.topology", $test->{out});
	$test->{status} = 1 << 8 if grep { m{^/} && !$now{$_} } @lines;
}

# "> NAME", what it printed, and "< STATUS SECONDS" for each of the programs.
# Return: whether all that were WANTED have run.
sub pass_on
{
	my ($dir, $wanted, $shape, $verdict) = @_;
	my ($test, $nr);

	for (split /\r?\n/, $verdict) {
		if (/^> (\S+)/) {
			$test = { name => $1, out => '', log => '' };
		} elsif (/^< (\d+) (\S+)/) {
			$test->{status} = $1;
			compare_topology($dir, $shape, $test)
				if $test->{name} eq '0-topology';
			say_verdict($shape, $test, $2);
			$test = undef;
			$nr++;
		} elsif ($test) {
			$test->{out} .= "$_\n";
			$test->{log} .= "$_\n";
		} elsif (/^end$/) {
			return $nr == $wanted;
		}
	}
	print "# $shape: it ended in $test->{name}\n$test->{log}\n" if $test;
	return 0;
}

# The programs among what failed, as a set; nothing if more did than they.
sub failed_programs
{
	my %programs;

	for (@_) {
		/^(\S+) \(\d+ passed, / or return;
		$programs{$1} = 1;
	}
	return %programs ? \%programs : undef;
}

sub test_programs
{
	my ($name, @wanted) = @_;
	my $dir = "$build/guests/$name-programs";
	my $kernel = fetch_kernel($name);
	my $chosen = @ARGV || $ENV{KTASK_TEST_PROGRAM};

	@wanted = @ARGV if @ARGV;
	my $failed = failed_parts(@wanted);

	for my $shape (grep { !$failed || $failed->{$_} } @wanted) {
		my ($which, $words, @machine) = @{ $shapes{$shape} };
		my $again = $failed && failed_programs(@{ $failed->{$shape} });

		$words .= ' numa_balancing=disable' if $name eq '6.1';
		# Linux 7.3 has memory for programs of eBPF only with cmpxchg16b, which
		# old emulators have none of, or where slabs are checked.
		$words .= ' slab_debug=F' if $shape eq 'umt' && !emulates('cx16');
		my @paths = programs($which, $again);

		@paths = programs_of_the_day($name, $shape, @paths)
			unless $again || $chosen;
		run_guest($dir, $kernel, make_initrd($dir, @paths), $shape,
			  $words,
			  sub { pass_on($dir, @paths + 1, @_) }, @machine);
	}
	finish();
}

1;
