# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Boots kernels in QEMU with the tests inside, and says what came of it as TAP.
#
#   test_kernel(NAME)	fetches, builds, and boots that kernel (tests/vm/kernels)
#			on machines of several shapes; debug-NAME is one that
#			finds errors, and is built (tests/vm/debug-kernel)
#   skip_unbuilt(NAME)	ends the test where that kernel would have to be built first
#   test_planted(NAME, WHAT => HOW...)  does that kernel find errors that are made
#			on purpose?  HOW is what it or PID 1 says of WHAT
#
# The verdict of a guest comes over its second serial port (tests/vm/init.c).  A
# boot that says nothing, or not all, is a failure, and so is any warning of its
# kernel, whose log is the first serial port.
#
# A boot that dies before PID 1 says a word is tried again, and said: software
# emulation has errors of its own, above all where a kernel changes its own code,
# which PID 1 has it do by then (tests/vm/settle.c).  No module of ours is loaded
# by then; what one does is never repeated.  But a first boot that never ends is, if its
# kernel says that a timer never fired: then a CPU of it sleeps for ever.
#
# Every test runs on every kernel and shape, but not each day.  6.12, and kernels that find
# errors, do all; the others do on each shape a third of the parts of tests/vm/init.c, so
# that each day each kernel does each part once (support/Sample.pm).  All is done where
# shapes, parts or cycles are chosen.  Of a shape that failed only those parts are
# repeated that did.
#
# What only chance may find (random requests, modules that come and go) and measurements
# are repeated in full with one node of 6.12, where that takes least, and on kernels that
# find errors; the others do a part of these rounds, KTASK_TEST_ROUNDS percent.
#
# 6.12, and kernels that find errors, are emulated by a thread for each CPU, so that
# CPUs race; the other kernels, whose interface is what is asked there, by one
# thread for all, which takes a quarter less of the machine's time.  A CPU that spins
# where CPUs race gives its thread's turn away (Yielding.pm).
#
# Behaves badly on a machine so busy that a guest gets no CPU for a minute: the
# kernel in it then warns of stalls.

package Guest;

use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use List::Util qw(max min);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);
use lib dirname(__FILE__), dirname(__FILE__) . '/../support';
use Again;
use Complaints;
use House;
use Sample;
use Served;
use Unpacked;
use Yielding;

our @EXPORT = qw(skip_unbuilt test_kernel test_planted test_vfio);
our @EXPORT_OK = qw(boot_to_pid_1 fetch_kernel fetch_source choose_machine build_modules
	emulates have_done limit_guests make_archive nodes result run_guest skip_all
	stock_modules why finish);

use constant BOOTS => 4;		# tries until PID 1 runs
use constant BOOT_LIMIT => 150;		# seconds for that
use constant LIMIT => 900;		# seconds for a whole boot
use constant LIMIT_DEBUG => 1500;	# of a kernel that checks everything
use constant PATIENCE_MAX => 4;		# times these, on a busy host
use constant CYCLES_FREE => 100;	# loads and unloads that LIMIT is enough for
use constant SHOWN_MAX => 6000;		# bytes of a log

my $cache = $ENV{KTASK_TEST_VM_CACHE} || "$build/vm";
my $seed = $ENV{KTASK_TEST_SEED} || int rand(1 << 31);
my ($qemu, $cpu);			# which is run, and emulates what
my @yielding;				# words for it where CPUs race
my $running;				# the guest
my $limit = LIMIT;
my $debug;				# it boots slowly
my $racing = 1;				# a thread of the host's for each CPU
my ($number, $failed) = (0, 0);

sub nodes
{
	my ($cpus, $memory, @distances) = @_;
	my @args;

	for my $id (0 .. $#$cpus) {
		my $node = "node,nodeid=$id";

		$node .= ",cpus=$cpus->[$id]" if length $cpus->[$id];
		$node .= ",memdev=m$id" if $memory->[$id];
		push @args, '-object', 'memory-backend-ram,'
			. "id=m$id,size=$memory->[$id]M,reserve=off" if $memory->[$id];
		push @args, '-numa', $node;
	}
	for my $from (0 .. $#distances) {
		my @to = @{ $distances[$from] };

		push @args, map { ('-numa',
			"dist,src=$from,dst=$_,val=$to[$_]") } 0 .. $#to;
	}
	return @args;
}

# Two equal nodes; and four, of which one has no CPU and one no memory, with a
# fifth whose memory can be taken away.  Each CPU is a socket: a cache that two
# nodes shared would be an impossible machine.
my @shapes = (
	['one node', '-smp', 2, '-m', 512],
	['two nodes', '-smp', '4,sockets=4', '-m', 512,
	 nodes(['0-1', '2-3'], [256, 256], [10, 20], [20, 10])],
	['four nodes', '-smp', '6,sockets=6', '-m', '640,slots=1,maxmem=2G',
	 nodes(['0-1', '2-3', '', '4-5', ''], [256, 256, 128, 0, 0],
	       [10, 20, 30, 20, 30], [20, 10, 20, 30, 30],
	       [30, 20, 10, 20, 30], [20, 30, 20, 10, 30],
	       [30, 30, 30, 30, 10]),
	 '-object', 'memory-backend-ram,id=dimm,size=256M',
	 '-device', 'pc-dimm,memdev=dimm,node=4'],
);

# A kernel panics if its timer does not tick at once, which a busy machine may cause.
# The emulator's TSC is the same on all CPUs, and read in a tenth of the time that the
# timers take which a kernel chooses that measures it.  A quarter of a boot would go to
# the kernel's own tests of cryptography and to keys for modules, which may be unsigned.
my $command_line = 'console=ttyS0 panic=-1 oops=panic loglevel=5 no_timer_check '
	. 'tsc=reliable clocksource=tsc cryptomgr.notests '
	. 'initcall_blacklist=jent_mod_init,load_system_certificate_list '
	. 'rcupdate.rcu_cpu_stall_timeout=100 watchdog_thresh=60 '
	. 'memhp_default_state=online_movable kcsan.skip_watch=1000 '
	. "ktask.seed=$seed";
# How often modules come and go, and the one part of the tests to run; none is all.
for my $word (qw(cycles only)) {
	my $value = $ENV{"KTASK_TEST_\U$word"};

	$command_line .= " ktask.$word=$value" if $value;
}
my $part = 'ktask.rounds=' . ($ENV{KTASK_TEST_ROUNDS} // 25);	# percent
my $cycles = $ENV{KTASK_TEST_CYCLES} // 0;
$limit += $cycles if $cycles > CYCLES_FREE;

# ---- TAP ----

sub result
{
	my ($ok, $text) = @_;

	$number++;
	$failed++ unless $ok;
	print $ok ? 'ok' : 'not ok', " $number - $text\n";
}

sub show
{
	my ($what, $path) = @_;
	my $text = (-e $path ? slurp($path) : '') =~ s/\r//gr;

	$text = '[...]' . substr($text, -(SHOWN_MAX)) if length $text > SHOWN_MAX;
	print "# $what:\n", map { "#  $_\n" } split /\n/, $text;
}

sub skip_all
{
	print "1..0 # SKIP @_\n";
	exit 0;
}

sub skip_unbuilt
{
	my ($name) = @_;

	skip_all("$name is not built: make check-vm-debug")
		unless -e "$cache/$name/complete";
}

# ---- a guest ----

# By how much limits are longer on a busy host, where an emulated CPU gets but a part of a
# CPU.  Two processes for each CPU are what the runner itself starts.
sub patience
{
	open(my $in, '<', '/proc/loadavg') or return 1;
	my ($load) = split ' ', <$in> // 0;

	return max(1, min(PATIENCE_MAX, int($load / (2 * qx(nproc)))));
}

sub start
{
	my ($patience, $dir, $kernel, $initrd, $words, @machine) = @_;
	my @accel = grep({ $_ eq '-accel' } @machine)
		? () : ('-accel', 'tcg,thread=' . ($racing ? 'multi' : 'single'),
			@yielding);
	my @command = ($qemu, qw(-nodefaults -display none -no-reboot),
		'-cpu', $cpu, @accel,
		'-serial', "file:$dir/log", '-serial', "file:$dir/verdict",
		'-kernel', $kernel, '-initrd', $initrd,
		'-append', "$command_line TEST_PATIENCE=$patience $words", @machine);

	unlink "$dir/log", "$dir/verdict";
	$running = fork() // die "fork: $!\n";
	return if $running;
	open(STDIN, '<', '/dev/null');
	open(STDOUT, '>', "$dir/qemu");
	open(STDERR, '>&', \*STDOUT);
	{ no warnings 'exec'; exec @command; }
	print STDERR "$command[0]: $!\n";
	POSIX::_exit(126);
}

sub stop
{
	return unless $running;
	kill 'KILL', $running;
	waitpid($running, 0);
	$running = undef;
}

$SIG{$_} = sub { stop(); exit 130 } for qw(INT TERM HUP);
END { my $status = $?; stop(); $? = $status; }

# Returns whether PID 1 has run, and whether the guest has ended by itself.
sub boot
{
	my ($dir, @guest) = @_;
	my $started = time;
	my $patience = patience();
	my $boot_limit = $patience * ($debug ? LIMIT : BOOT_LIMIT);
	my $whole_limit = $patience * ($limit + ($debug ? LIMIT_DEBUG - LIMIT : 0));

	start($patience, $dir, @guest);
	while (waitpid($running, WNOHANG) == 0) {
		my $reached = -s "$dir/verdict";

		if (time - $started > ($reached ? $whole_limit : $boot_limit)) {
			stop();
			return (-s "$dir/verdict", 0);
		}
		sleep 0.05;
	}
	$running = undef;
	return (-s "$dir/verdict", 1);
}

# The guest's results, and whether they are as many as it says.
sub pass_on
{
	my ($shape, $verdict) = @_;
	my ($nr, $part) = (0, '');

	for (split /\r?\n/, $verdict) {
		if (/^(not )?ok \d+ - (.*)/) {
			$nr++;
			result(!$1, "$shape: $part$2");
		} elsif (/^# part (\w+)$/) {
			$part = "$1: ";
		} elsif (/^#/) {
			print "$_\n";
		} elsif (/^1\.\.(\d+)$/) {
			return $1 == $nr;
		}
	}
	return 0;
}

sub lost_timer
{
	my ($log) = @_;

	return -e $log && slurp($log) =~ /kthread timer wakeup didn't happen/;
}

# Returns whether it ended by itself, what PID 1 said, and what the kernel did.
sub boot_to_pid_1
{
	my ($dir, $packed, $initrd, $shape, $words, @machine) = @_;
	my $kernel = unpacked_kernel($packed);
	my ($reached, $ended);

	for my $try (1 .. BOOTS) {
		($reached, $ended) = boot($dir, $kernel, $initrd, $words,
					  @machine);
		my $lost = $try == 1 && $reached && !$ended && lost_timer("$dir/log");

		last if $reached && !$lost;
		print "# $shape: boot $try ", $lost ? 'lost a timer' : 'ended before PID 1',
			"\n";
		show('log', "$dir/log");
	}
	return ($ended, $reached ? slurp("$dir/verdict") : '',
		-e "$dir/log" ? slurp("$dir/log") : '');
}

# The reason of a failure, for its title: where only titles are shown it is all.
sub why
{
	my ($first, $more) = @_;

	return '' unless defined $first;
	$first .= " ($more)" if defined $more;
	return ': ' . $first =~ s/\r//r =~ s/[^ -~]|#/ /gr;
}

sub after
{
	my ($verdict, $ended) = @_;
	my ($last) = $verdict =~ /.*^(?:ok|not ok|>) (.+?)\r?$/ms;

	return ($ended ? 'ended' : 'stopped by its limit') . ' after '
		. ($last // 'nothing');
}

# run_guest(DIR, KERNEL, INITRD, SHAPE, WORDS, READ, MACHINE...): boots, with
# these WORDS for the kernel; READ(SHAPE, VERDICT) passes on what was said and
# tells whether that is all of it.
sub run_guest
{
	my ($dir, $kernel, $initrd, $shape, $words, $read, @machine) = @_;
	my $failed_before = $failed;
	my ($ended, $verdict, $log) = boot_to_pid_1($dir, $kernel, $initrd,
		$shape, $words, @machine);
	my $complete = $read->($shape, $verdict);
	my @wrong = complaints($log);
	my %races = others_races($log);

	print "# $shape: a race of the kernel's own, $races{$_} times: $_\n"
		for sort keys %races;
	result($complete && $ended, "$shape: the guest comes to its end"
		. why($complete && $ended ? () : after($verdict, $ended)));
	result(!@wrong, "$shape: the kernel complains of nothing"
		. why($wrong[0], $log =~ /RIP: \w+:(\S+)/));
	return if $failed == $failed_before;
	print map { "# $_\n" } @wrong;
	show('log', "$dir/log");
	show('qemu', "$dir/qemu");
}

# ---- what a guest boots ----

# make_archive(DIR, COMMANDS): DIR/initrd.cpio of what the shell commands put
# into DIR/initrd, where /init is.
sub make_archive
{
	my ($dir, $commands) = @_;
	my ($status, $said) = capture(<<END);
set -e
rm -rf $dir/initrd
mkdir -p $dir/initrd
cd $top
$commands
cd $dir/initrd
find . | cpio --quiet -o -H newc >../initrd.cpio
END
	die "making the initial file system: $said" if $status;
	return "$dir/initrd.cpio";
}

# PID 1, which is the same for all kernels: made by the first test that wants it.
sub build_init
{
	my $init = "$build/guests/init";
	my @sources = (glob("$top/tests/vm/*.[ch]"),
		       glob("$top/ktask/include/uapi/*/*.h"));

	system('mkdir', '-p', "$build/guests");
	open(my $lock, '>', "$init.lock") or die "$init.lock: $!\n";
	flock($lock, LOCK_EX);
	return $init if -e $init && !grep { (stat)[9] >= (stat $init)[9] } @sources;
	my ($status, $said) = capture("cd $top && $cc -O2 -Wall -Wextra -Werror "
		. "-static -Iktask/include/uapi -o $init.new tests/vm/*.c && "
		. "mv $init.new $init");

	die "building PID 1: $said" if $status;
	return $init;
}

# The output of one of the scripts beside this; 77 skips everything.
sub have_done
{
	my ($command) = @_;
	my ($status, $said) = capture("$top/tests/vm/$command");

	print map { "# $_\n" } split /\n/, $said;
	skip_all((split /\n/, $said)[-1]) if $status == 77;
	return $status == 0;
}

# choose_machine(RACES, CHECKS): what will run the guest; RACES: a thread for each CPU;
# CHECKS: a kernel that finds errors, which takes longer
sub choose_machine
{
	my $checks;

	($racing, $checks) = @_;
	$debug = 1 if $checks;
	$| = 1;
	skip_all('no cpio') unless have('cpio');
	($qemu, $cpu) = split /\n/, qx("$top/tests/vm/fetch-qemu" "$cache");
	skip_all('no qemu-system-x86_64') unless $qemu;
	@yielding = yielding($qemu) if $racing;
}

# emulates(FEATURE): whether tests/vm/fetch-qemu asks for that one
sub emulates
{
	my ($feature) = @_;

	return $cpu =~ /\+\Q$feature\E\b/;
}

# limit_guests(SECONDS): how long a whole boot may take from now on
sub limit_guests
{
	($limit) = @_;
}

# fetch_kernel(NAME): where it lies; and what will run it is chosen.
sub fetch_kernel
{
	my ($name) = @_;

	choose_machine($name =~ /^debug-|^6\.12$/);
	my $how = $name =~ /^debug-(.*)/ ? "debug-kernel $cache $1"
					 : "fetch $cache $name";
	have_done($how) or die "no Linux $name\n";
	return "$cache/$name/vmlinuz";
}

# fetch_source(NAME): where its headers are, and the source of its VFIO
sub fetch_source
{
	my ($name) = @_;

	have_done("fetch-source $cache $name") or die "no source of Linux $name\n";
	chomp(my $release = slurp("$cache/$name/release"));
	return ("$cache/$name/root/usr/src/linux-headers-$release", "$cache/$name/source");
}

# stock_modules(NAME, DIRECTORY, MODULE...): shell commands that put the kernel's own there
sub stock_modules
{
	my ($name, $directory, @modules) = @_;

	skip_all('no xz') unless have('xz');
	return <<END;
for module in @modules; do
	found=\$(find -L $cache/$name/image -name "\$module.ko*")
	case \$found in
	*.xz) xz -dc "\$found" >$directory/\$module.ko ;;
	*) cp "\$found" $directory/\$module.ko ;;
	esac
done
END
}

# build_modules(NAME, DIR, DIRECTORY...): DIR/*.ko
sub build_modules
{
	my ($name, $dir, @directories) = @_;

	skip_all('no unshare') unless have('unshare');
	return have_done("build $cache $name $dir @directories");
}

# dkms_modules(NAME, DIR): DIR/dkms/ktask.ko, and VFIO's driver where the kernel's source
# can be had; whether they are there
sub dkms_modules
{
	my ($name, $dir) = @_;
	my $make = $ENV{MAKE} || 'make';
	my ($lacks, $why) = capture("$top/tests/vm/fetch-source $cache $name");
	my $driver = $lacks ? '' : "$build/dkms/ktask-vfio-*";
	my ($status, $said) = capture("$make -s -C $top B=$build dkms && "
		. "ls -d $build/dkms/ktask-[0-9]* $driver");

	print map { "# $_\n" } split /\n/, $why;
	return if $status || ($lacks && $lacks != 77);
	return unless have_done("dkms $cache $name $dir/dkms " . $said =~ s/\n/ /gr);
	return $lacks || slurp("$dir/dkms/vfio_iommu_type1.ko") =~ /\bversion=[\d.]+\+ktask\0/;
}

# The sections of a module that the kernel loads, each with its bytes and what is
# to be put into them.  Left out is what tells of the build and not of the module.
sub loaded_code
{
	my ($module, $dir) = @_;
	my (undef, $sections) = capture("objdump -h -w $module");
	my (undef, $places) = capture("objdump -r -w $module");
	my %code;

	for (split /\n/, $sections) {
		next unless /^\s*\d+ (\S+) .*\bCONTENTS, ALLOC\b/;
		next if $1 =~ /^\.note|^\.modinfo$/;
		my ($status, $said) = capture("objcopy -O binary "
			. "--only-section=$1 $module $dir/section");

		die "reading $1 of $module: $said" if $status;
		$code{$1} = slurp("$dir/section");
	}
	while ($places =~ /^RELOCATION RECORDS FOR \[(\S+)\]:\n(.*?)(?:\n\n|\z)/gms) {
		$code{$1} .= $2 if defined $code{$1};
	}
	return %code;
}

# same_code(ONE, OTHER, DIR): the sections that differ, or '' for none
sub same_code
{
	my ($one, $other, $dir) = @_;
	my %one = loaded_code($one, $dir);
	my %other = loaded_code($other, $dir);
	my %all = (%one, %other);

	die "no code in $one\n" unless $one{'.text'};
	return join ' ', grep {
		($one{$_} // '') ne ($other{$_} // '')
	} sort keys %all;
}

sub finish
{
	print "1..$number\n";
	exit($failed ? 1 : 0);
}

# Which kernel, and what it boots from: nothing if that cannot be built.
sub prepare
{
	my ($name, $dkms) = @_;
	my $modules = "$build/guests/$name";
	my $dir = $modules . ($dkms ? '-dkms' : '-module');
	my $kernel = fetch_kernel($name);
	my $built = build_modules($name, "$build/guests", 'tests/vm/module',
				  'ktask/examples/kernel');
	my $module = "$modules/ktask.ko";

	$debug = $name =~ /^debug/;
	result($built, 'the modules are built without a warning');
	if ($built && $dkms) {
		$module = "$dir/dkms/ktask.ko";
		$built = dkms_modules($name, $dir);
		result($built, "DKMS builds the module, and VFIO's driver that uses it");
		my $differs = $built ? same_code("$modules/ktask.ko", $module,
						 $dir) : '';
		result(!$differs, 'what DKMS builds is the tested code'
			. why($differs || undef));
	}
	return unless $built;
	my $init = build_init();
	my $toucher = build_toucher();

	return ($dir, $kernel, make_archive($dir, <<END));
cp $modules/ktask_*.ko $module $dir/initrd
strip --strip-debug $dir/initrd/*.ko
[ -z "$toucher" ] || cp $toucher $dir/initrd
for program in engines ktaskd; do
	[ ! -x $build/tests/vm/\$program ] || cp $build/tests/vm/\$program $dir/initrd
done
cp $init $dir/initrd/init
END
}

sub all_parts
{
	my ($table) = slurp("$top/tests/vm/init.c") =~ /^\} parts\[\] = \{\n(.*?)^\};/ms;

	return $table =~ /^\t\{ "(\w+)"/mg;
}

# parts_of_the_day(NAME, NR): those that run on that kernel and the NRth shape today
sub parts_of_the_day
{
	my ($name, $nr) = @_;

	return third_of_the_day($name, $nr, all_parts());
}

# The parts of what failed; nothing if something did that is in no part.
sub failed_of_parts
{
	my %failed;

	for (@_) {
		/^(\w+): / or return;
		$failed{$1} = 1;
	}
	return grep { $failed{$_} } all_parts();
}

# Words for a kernel's command line.
sub parts_to_run
{
	my ($name, $nr, $failed) = @_;
	my @parts = $failed ? failed_of_parts(@$failed) : ();

	return '' if $ENV{KTASK_TEST_ONLY};
	@parts = parts_of_the_day($name, $nr)
		unless @parts || @ARGV || $ENV{KTASK_TEST_CYCLES};
	return @parts ? 'ktask.only=' . join(',', @parts) : '';
}

# test_kernel(NAME, DKMS): with DKMS it is that which builds the module.
sub test_kernel
{
	my ($name, $dkms) = @_;
	my $failed = failed_parts(map { $_->[0] } @shapes);
	my @guest = prepare($name, $dkms);

	for my $nr (@guest ? 0 .. $#shapes : ()) {
		my ($title, @machine) = @{ $shapes[$nr] };
		my $whole = $debug || ($name eq '6.12' && !$dkms
				       && $title eq 'one node');

		next if @ARGV && !grep { $title =~ /^$_/ } @ARGV;
		next if $failed && !$failed->{$title};
		my ($dir, $kernel, $initrd) = @guest;
		my $parts = parts_to_run($name, $nr, $failed && $failed->{$title});

		$initrd = with_jvm($initrd) if $title eq 'one node' && !$debug
			&& ($ENV{KTASK_TEST_ONLY} || $parts || 'served') =~ /served/;
		run_guest($dir, $kernel, $initrd, $title,
			  join(' ', $whole ? () : $part, $parts), \&pass_on, @machine);
	}
	finish();
}

sub test_planted
{
	my ($name, %wanted) = @_;
	my @guest = prepare($name);
	my ($title, @machine) = @{ $shapes[0] };

	return unless @guest;
	my ($ended, $verdict, $log) = boot_to_pid_1(@guest, $title,
		'ktask.planted=1', @machine);
	my $said = join "\n", complaints($log), $verdict;

	result($ended, "$name: the guest comes to its end");
	result(scalar($said =~ $wanted{$_}), "$name: $_ is found")
		for sort keys %wanted;
	show('log', "$guest[0]/log") if $failed;
}

# test_vfio(NAME): the kernel's own modules of VFIO, and a device.  With interrupts
# remapped the kernel panics if its timer does not tick at once, which a busy machine
# makes so.
sub test_vfio
{
	my ($name) = @_;
	my $dir = "$build/guests/$name-vfio";
	my $kernel = fetch_kernel($name);

	skip_all('tests/vm/vfio is not built') unless -x "$build/tests/vm/vfio";
	build_modules($name, "$build/guests", 'tests/vm/module',
		      'ktask/examples/kernel') or die "no modules\n";
	my $init = build_init();
	my $initrd = make_archive($dir, <<END);
cp $build/guests/$name/ktask.ko $build/tests/vm/vfio $dir/initrd
strip --strip-debug $dir/initrd/*.ko
@{[stock_modules($name, "$dir/initrd", qw(irqbypass vfio vfio_iommu_type1 vfio-pci-core
	vfio-pci))]}
cp $init $dir/initrd/init
END
	run_guest($dir, $kernel, $initrd, 'VFIO',
		  "intel_iommu=on ktask.vfio=1 $part", \&pass_on,
		  '-machine', 'q35,kernel-irqchip=split', '-smp', 2,
		  '-m', 768, '-device', 'intel-iommu', '-device', 'edu');
	finish();
}

1;
