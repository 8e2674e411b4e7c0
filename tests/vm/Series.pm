# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Tests of a patch series for the kernel, in guests, as TAP.
#
#   test_series(NAME, SHAPE...)	boots the unpatched and the patched kernel of that
#				series on machines of these shapes
#   test_debug(NAME, DEBUG, SHAPE...)	boots the patched kernel of that series that finds
#				errors (kasan or kcsan): it must find none
#   test_own(NAME)	runs the kernel's own tests on both kernels of that series
#   test_ltp(NAME)	the same with the memory tests of LTP, where LTP_SOURCE is its source
#   test_mistakes(NAME, NUMBER...)	plants mistakes in that series (tests/vm/Planted.pm),
#			all or these: each must be found
#   test_driver(NAME)	boots a kernel as Debian has it (tests/vm/kernels), where
#			VFIO's own driver and the one that DKMS would build do the same;
#			skips if Debian has a newer one than the series is for
#   series_boots(NAME, READ, WORDS, SHAPE, KERNEL...)	for measurements: boots each
#				of these, plain or ktask, on a machine of that shape;
#				@series_machine is what else QEMU is told
#
# Both kernels run the same PID 1 (tests/vm/series), which says what it finds as
# facts, "= name: value".  A fact must be the same on both.  What each kernel says
# is right or wrong by itself is passed on.
#
# The kernels are those that `make kernel-NAME` has built of these very sources;
# without them all is skipped.  Which one has run is read in its log.

package Series;

use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(dirname);
use lib dirname(__FILE__), dirname(__FILE__) . '/../support';
use Complaints;
use Guest qw(boot_to_pid_1 build_modules choose_machine fetch_kernel fetch_source finish
	limit_guests make_archive nodes result run_guest skip_all stock_modules why);
use House;
use Planted qw(mistakes);

our @EXPORT = qw(test_debug test_driver test_ltp test_mistakes test_own test_series);
our @EXPORT_OK = qw(series_boots series_kernels @series_machine);

# Seconds of a boot in which much goes and comes, one after another; of one for all of
# the kernel's own tests; and of one with a mistake.
use constant DAYS_LIMIT => 2700;
use constant MISTAKE_LIMIT => 600;
use constant OWN_LIMIT => 5400;

my $kernels = $ENV{KTASK_TEST_KERNELS} || "$build/kernels";
my $ltp_tests = (grep { -d } "$top/ktask/tests/ltp", "$top/tests/ltp")[0];
my $builder = (glob "$top/{ktask/,}kernel/series/build")[0];
my $cache = $ENV{KTASK_TEST_VM_CACHE} || "$build/vm";

# The log is to say which kernel runs, and what struct pages took.
our @series_machine;
my $log_words = 'loglevel=7';
my $vfio_words = 'intel_iommu=on series.vfio=1';
my @vfio = ('-machine', 'q35,kernel-irqchip=split', '-smp', 2, '-m', 1024, '-device',
	    'intel-iommu', '-device', 'edu');
# Facts of what helpers do are compared, and as it is shipped the kernel does without them
# for seconds while this machine is too busy for each CPU of a guest.  So only one boot, on
# one node, has its default.  Whether helpers came is not asked there (series.alone).
my $with_helpers = 'ktask.watch_steal=0';
my $by_default = 'series.alone=1';
my $without_helpers = 'ktask.cap_percent=0 series.alone=1';
# Who runs the guest decides how fast, so that nothing is said of time.
my %shapes = (
	one => ['one node', '', '-smp', 2, '-m', 3072],
	two => ['two nodes', '', '-smp', '2,sockets=2', '-m', 3072,
		nodes(['0', '1'], [1536, 1536], [10, 20], [20, 10])],
	# Two nodes have a CPU each, one two, one none.
	four => ['four nodes', '', '-smp', '4,sockets=4', '-m', 3072,
		 nodes(['0', '1', '2-3', ''], [512, 512, 768, 1280],
		       [10, 20, 20, 30], [20, 10, 20, 30], [20, 20, 10, 30],
		       [30, 30, 30, 10])],
	# Memory for two whole gigantic pages: a job for a file, in which each is one.
	gigantic => ['gigantic pages', 'series.gigantic=2', '-smp', 2, '-m', 7168],
	vfio => ['VFIO', $vfio_words, @vfio],
	# The same with as many processes that compute as there are CPUs.
	neighbours => ['one node and neighbours', 'series.neighbours=2', '-smp', 2,
		       '-m', 3072],
	neighbours_vfio => ['VFIO and neighbours', "$vfio_words series.neighbours=2",
			    @vfio],
	# What is freed is cleared at once, and some CPU idles, for a helper.
	flush => ['CPUs that use what goes', 'init_on_free=1 series.flush=1',
		  '-smp', 4, '-m', 1024],
	# A device behind an IOMMU, memory of two nodes, and gigantic pages of the second.
	vfio_two => ['VFIO, two nodes', "$vfio_words hugepagesz=1G hugepages=1:2",
		     '-machine', 'q35,kernel-irqchip=split', '-smp', '2,sockets=2',
		     '-m', 5120, '-device', 'intel-iommu', '-device', 'edu',
		     nodes(['0', '1'], [1024, 4096], [10, 20], [20, 10])],
	own => ["the kernel's own tests", "$vfio_words series.own=1", @vfio, '-m', 4096],
	# Those that wrap around process ids and the like take minutes.
	ltp => ['memory tests of LTP', 'series.own=1 series.limit=60', '-smp', 2, '-m', 3072],
	# CPUs and memory that go and come: some may go, and each client has helpers.
	days => ['bad days', 'series.days=1 movablecore=384M', '-smp', 4, '-m', 1536],
	days_vfio => ['bad days of VFIO', "$vfio_words series.days=1 movablecore=384M",
		      '-machine', 'q35,kernel-irqchip=split', '-smp', 4, '-m', 1536,
		      '-device', 'intel-iommu', '-device', 'edu'],
	# For struct pages: memory that next to nothing touches, so much that the clock
	# of 4 ms is fine enough.  On one node; on two of which one has four times as
	# much; and on a node that has no CPU.
	init => ['one node of 16 GiB', '', '-smp', 2, '-m', 16384],
	uneven => ['nodes of 6 and 24 GiB', '', '-smp', '2,sockets=2', '-m', 30720,
		   nodes(['0', '1'], [6144, 24576], [10, 20], [20, 10])],
	# Persistent memory, whose struct pages come when its driver is put on.
	device => ['memory of a device', 'memmap=12G!4G series.device=1', '-smp', 2,
		   '-m', 16384],
	memory => ['a node without CPUs', '', '-smp', '2,sockets=2', '-m', 25600,
		   nodes(['0-1', ''], [1024, 24576], [10, 20], [20, 10])],
);

# series_kernels(NAME, DEBUG): DEBUG, kasan or kcsan, is one that finds errors.
sub series_kernels
{
	my ($name, $debug) = @_;
	my ($status, $said) = capture("$builder $kernels $name have " . ($debug // ''));

	skip_all((split /\n/, $said)[-1]) if $status;
	return "$kernels/$name" . ($debug ? "-$debug" : '');
}

# other_release(DIR, AT, KERNEL): the one in the log of the guest, if it is not that of
# AT/KERNEL; "none" if the log has none.
sub other_release
{
	my ($dir, $at, $kernel) = @_;
	my $log = -e "$dir/log" ? slurp("$dir/log") : '';
	my ($release) = $log =~ /Linux version (\S+)/;
	my ($wanted) = $kernel eq 'ktask' ? slurp("$at/release") =~ /^(\S+)/ : ();

	return $release // 'none'
		unless $wanted ? ($release // '') eq $wanted
			: ($release // '') =~ /-\Q$kernel\E$/;
	return '';
}

# read_facts(SETS, VERDICT): the facts, by the set that they are of
sub read_facts
{
	my ($sets, $verdict) = @_;
	my $facts = $sets->{''} = { order => [], value => {} };

	for (split /\r?\n/, $verdict) {
		if (/^= (.*): (.*)/) {
			push @{ $facts->{order} }, $1
				unless exists $facts->{value}{$1};
			$facts->{value}{$1} .= ($facts->{value}{$1} ? ' ' : '') . $2;
		} elsif (/^== (\w+)$/) {
			$facts = $sets->{$1} = { order => [], value => {} };
		}
	}
}

# Verdicts are passed on; facts go into the hash, by the set that they are of.
sub read_guest
{
	my ($sets, $shape, $verdict) = @_;
	my $nr = 0;

	read_facts($sets, $verdict);
	for (split /\r?\n/, $verdict) {
		if (/^(not )?ok \d+ - (.*)/) {
			$nr++;
			result(!$1, "$shape: $2");
		} elsif (/^# /) {
			print "$_\n";
		} elsif (/^1\.\.(\d+)$/) {
			return $1 == $nr;
		}
	}
	return 0;
}

# Boots one kernel with these words and returns its facts.
sub facts_of
{
	my ($at, $dir, $kernel, $words, $shape) = @_;
	my ($title, $more, @machine) = @{ $shapes{$shape} };
	my %sets;
	my $label = "$title, $kernel" . ($words ? ", $words" : '');

	run_guest($dir, "$at/$kernel", "$dir/initrd.cpio", $label,
		  "$log_words $more $words",
		  sub { read_guest(\%sets, @_) }, @machine);
	my $other = other_release($dir, $at, $kernel);

	result(!$other, "$label: the log says that this kernel ran"
		. why($other || undef));
	return $sets{''};
}

sub compare_facts
{
	my ($title, $plain, $patched, $than) = @_;
	my @order = @{ $plain->{order} };
	my %seen = map { $_ => 1 } @order;
	my @differ;

	push @order, grep { !$seen{$_} } @{ $patched->{order} };
	for my $name (@order) {
		my ($a, $b) = map { $_->{value}{$name} // 'not said' }
			$plain, $patched;

		push @differ, "$name: $a, patched $b" if $a ne $b;
	}
	print map { "# $title: $_\n" } @differ;
	result(@order > 0 && !@differ,
	       "$title: " . @order . ' facts are as ' . ($than // 'on the unpatched kernel')
		. why(@order ? $differ[0] : 'none'));
}

# padata says for each node what its struct pages took, a job says so once.
sub by_padata
{
	my ($log) = @_;

	return $log =~ /node \d+ deferred pages initialised/
		&& $log !~ /deferred pages initialised in \d+ms by/;
}

sub by_job
{
	my ($log) = @_;

	return $log =~ /deferred pages initialised in \d+ms by [2-9] threads/
		&& $log !~ /node \d+ deferred pages initialised/;
}

# build_guest(DIR, COMMANDS): these shell commands put more into DIR/initrd.
sub build_guest
{
	my ($dir, $commands) = @_;

	return make_archive($dir, <<END . ($commands // ''));
$cc -O2 -Wall -Wextra -Werror -static -Itests/vm -o $dir/initrd/init tests/vm/series/*.c \\
	tests/vm/failing.c tests/vm/processes.c tests/vm/vfio_device.c
END
}

sub test_series
{
	my ($name, @wanted) = @_;
	my $dir = "$build/guests/series-$name";
	my $at = series_kernels($name);

	choose_machine(1);
	build_guest($dir);
	for my $shape (@wanted) {
		my $title = $shapes{$shape}[0];
		limit_guests(DAYS_LIMIT) if $shape =~ /^days/;
		my $plain = facts_of($at, $dir, 'plain', '', $shape);
		my $patched = facts_of($at, $dir, 'ktask', $with_helpers, $shape);

		compare_facts($title, $plain, $patched);
		next unless $shape eq 'one';
		result(by_job(slurp("$dir/log")),
		       "$title: struct pages are initialised by a job of several threads");
		my $shipped = facts_of($at, $dir, 'ktask', $by_default, $shape);
		my $alone = facts_of($at, $dir, 'ktask', $without_helpers, $shape);

		compare_facts("$title, by default", $plain, $shipped);
		compare_facts("$title, no helpers", $plain, $alone);
		result(by_padata(slurp("$dir/log")),
		       "$title, no helpers: struct pages are left to padata");
	}
	finish();
}

# What is right or wrong by itself, and what the kernel complains of.
sub test_debug
{
	my ($name, $debug, @wanted) = @_;
	my $dir = "$build/guests/series-$name-$debug";
	my $at = series_kernels($name, $debug);

	choose_machine(1, 1);
	build_guest($dir);
	facts_of($at, $dir, 'ktask', "$with_helpers series.debug=$debug", $_) for @wanted;
	finish();
}

# Seconds until the kernel calls a task hung: these guests may wait for ever.
my $soon_hung = 'sysctl.kernel.hung_task_timeout_secs=60';

# What a guest says that is wrong, first what its kernel complains of; '' for nothing.
sub first_wrong
{
	my ($plain, $ended, $verdict, $log) = @_;
	my %sets;
	my ($complaint) = complaints($log);
	my ($claim) = $verdict =~ /^not ok \d+ - (.*?)\r?$/m;

	return $complaint =~ s/\r//r if $complaint;
	return $claim if $claim;
	return 'it comes to no end' unless $ended && $verdict =~ /^1\.\.\d+\r?$/m;
	read_facts(\%sets, $verdict);
	my $facts = $sets{''};

	for my $name (@{ $plain->{order} }) {
		my ($a, $b) = map { $_->{value}{$name} // 'not said' } $plain, $facts;

		return "$name: $a, with the mistake $b" if $a ne $b;
	}
	return '';
}

sub test_mistakes
{
	my ($name, @numbers) = @_;
	my $dir = "$build/guests/mistakes-$name";
	my @all = mistakes();
	my (%plain, @table);

	skip_all('make check-kernel runs it') unless $ENV{KTASK_TEST_ALL_SHAPES} || @numbers;
	my $at = series_kernels($name);
	my $planted = series_kernels($name, 'planted');

	choose_machine(1);
	build_guest($dir);
	for my $number (@numbers ? @numbers : 1 .. @all) {
		my ($what, $shape) = @{ $all[$number - 1] };
		my ($title, $more, @machine) = @{ $shapes{$shape} };

		$plain{$shape} //= facts_of($at, $dir, 'plain', '', $shape);
		limit_guests(MISTAKE_LIMIT);
		my @found = boot_to_pid_1($dir, "$planted/ktask", "$dir/initrd.cpio",
			$title, "$log_words $more $with_helpers $soon_hung "
			. "ktask_planted=$number", @machine);
		my $wrong = first_wrong($plain{$shape}, @found);

		result($wrong ne '', "found: $what" . why($wrong || undef));
		push @table, "| $what | $title | $wrong |";
	}
	print map { "# $_\n" } '| mistake | guest | found as |', '|---|---|---|', @table;
	finish();
}

# Programs of the very source that the kernels are built of.
sub build_own_tests
{
	my ($name) = @_;
	my ($lacks, $source) = capture("$builder $kernels $name source");
	my $own = "$build/guests/own-tests-$name";

	chomp $source;
	skip_all((split /\n/, $source)[-1]) if $lacks;
	my ($status, $said) = capture("CC='$cc' $top/tests/vm/build-own-tests $source $own "
		. $name);

	print map { "# $_\n" } split /\n/, $said;
	skip_all((split /\n/, $said)[-1]) if $status == 77;
	result(!$status, "the kernel's own tests are built");
	for ($said =~ /^(\S+ cannot be built: .*)/mg) {
		my ($program, $reason) = split / cannot be built: /, $_, 2;

		result(1, "$program does as on the unpatched kernel # SKIP it cannot be "
			. "built" . why($reason));
	}
	finish() if $status;
	return $own;
}

# Both kernels run the programs of OWN/list, of which COMMANDS put more into the guest.
sub compare_programs
{
	my ($at, $dir, $own, $shape, $commands) = @_;

	build_guest($dir, <<END . ($commands // ''));
mkdir $dir/initrd/own
cp $own/list $dir/initrd/own
cd $own && cp --parents \$(cut -d ' ' -f 1 list | sort -u) $dir/initrd/own
END
	my $plain = facts_of($at, $dir, 'plain', '', $shape);
	my $patched = facts_of($at, $dir, 'ktask', $with_helpers, $shape);

	compare_facts($shapes{$shape}[0], $plain, $patched);
}

sub test_own
{
	my ($name) = @_;

	skip_all('make check-kernel runs it') unless $ENV{KTASK_TEST_ALL_SHAPES};
	my $at = series_kernels($name);

	choose_machine(1);
	limit_guests(OWN_LIMIT);
	my $own = build_own_tests($name);

	compare_programs($at, "$build/guests/own-$name", $own, 'own');
	finish();
}

# OUT/list, and below OUT the programs, without what only debuggers read.
sub collect_ltp
{
	my ($out) = @_;
	my ($unbuilt, $ltp) = capture("$ltp_tests/build $ENV{LTP_SOURCE} $build/ltp");

	chomp $ltp;
	skip_all((split /\n/, $ltp)[-1]) if $unbuilt;
	my ($status, $said) = capture(<<END);
set -e
rm -rf $out && mkdir -p $out/ltp
for program in \$($ltp_tests/programs $ltp); do
	strip -o $out/ltp/\${program##*/} \$program
	echo ltp/\${program##*/}
done >$out/list
ldd $out/ltp/* | sed -n 's|.* \\(/[^ ]*\\) (.*|\\1|p; s|^[[:space:]]*\\(/[^: ]*\\) (.*|\\1|p' |
	sort -u >$out/libraries
END
	die "programs of LTP: $said" if $status;
}

# They need libraries, which lie where they lie here.
sub test_ltp
{
	my ($name) = @_;
	my $own = "$build/guests/ltp-programs";

	skip_all('make check-kernel runs it') unless $ENV{KTASK_TEST_ALL_SHAPES};
	skip_all('no source of LTP: LTP_SOURCE=DIRECTORY') unless $ENV{LTP_SOURCE};
	my $at = series_kernels($name);

	choose_machine(1);
	limit_guests(OWN_LIMIT);
	collect_ltp($own);
	my $dir = "$build/guests/ltp-$name";

	compare_programs($at, $dir, $own, 'ltp',
			 "cp -L --parents \$(cat libraries) $dir/initrd\n");
	finish();
}

# The driver that DKMS would build of the kernel's source, without DKMS, and ktask.ko.
sub build_driver
{
	my ($name, $dir) = @_;
	my ($status, $said) = capture(<<END);
set -e
\${MAKE:-make} -s -C $top B=$build DKMS_VFIO=$dir/driver dkms-vfio
$dir/driver/prepare @{[fetch_source($name)]}
END

	print map { "# $_\n" } split /\n/, $said;
	my $built = !$status && build_modules($name, "$dir/modules", "$dir/driver");

	result(!$status, 'the patches apply to the source of this very kernel'
		. why($status ? (split /\n/, $said)[-1] : undef));
	result($built, 'the driver is built of exported symbols, without a warning');
	return $built;
}

# The newest kernel is fetched of whatever version it is; the series says which it is for.
sub skip_other_version
{
	my ($name) = @_;
	my $source = dirname($builder) . "/$name.x/source";

	return unless -e $source;
	my ($wanted) = slurp($source) =~ /^(\d+\.\d+)\s/m;

	chomp(my $release = slurp("$cache/$name/release"));
	skip_all("the series is for $wanted, Debian has $release")
		unless $release =~ /^\Q$wanted\E(?!\d)/;
}

# test_driver(NAME, WORDS): with words for PID 1 nothing is compared.
sub test_driver
{
	my ($name, $words) = @_;
	my $dir = "$build/guests/driver-$name";
	my $kernel = fetch_kernel($name);
	my ($title, $more, @machine) = @{ $shapes{vfio} };
	my %sets = map { $_ => { order => [], value => {} } } qw(stock patched);

	skip_other_version($name);
	build_driver($name, $dir) or finish();
	build_guest($dir, <<END);
cp $dir/modules/$name/ktask.ko $dir/initrd
cp $dir/modules/$name/vfio_iommu_type1.ko $dir/initrd/patched.ko
strip --strip-debug $dir/initrd/*.ko
@{[stock_modules($name, "$dir/initrd", qw(irqbypass vfio vfio-pci-core vfio-pci
	vfio_iommu_type1))]}
mv $dir/initrd/vfio_iommu_type1.ko $dir/initrd/stock.ko
END
	run_guest($dir, $kernel, "$dir/initrd.cpio", $title,
		  "$log_words $more series.driver=1 " . ($words // ''),
		  sub { read_guest(\%sets, @_) }, @machine);
	compare_facts($title, $sets{stock}, $sets{patched}, 'of the stock driver')
		unless $words;
	finish();
}

# READ is given the kernel, what PID 1 said, and the log.
sub series_boots
{
	my ($name, $read, $words, $shape, @order) = @_;
	my $dir = "$build/guests/bench-series-$name";
	my $at = series_kernels($name);
	my ($title, $more, @machine) = @{ $shapes{$shape} };

	choose_machine(1);
	build_guest($dir);
	for my $kernel (@order) {
		my $file = $kernel eq 'off' ? 'ktask' : $kernel;
		my $off = $kernel eq 'off' ? 'ktask.cap_percent=0' : '';
		my $said = '';

		run_guest($dir, "$at/$file", "$dir/initrd.cpio",
			  "$title, $kernel",
			  "$log_words $more $words $off series.bench=1",
			  sub { $said = $_[1]; $said =~ /^1\.\.0\r?$/m },
			  @machine, @series_machine);
		my $other = other_release($dir, $at, $file);

		if ($other) {
			result(0, "$title, $kernel: the log says that this kernel ran"
				. why($other));
			finish();
		}
		$read->($kernel, $said, slurp("$dir/log"));
	}
}

1;
