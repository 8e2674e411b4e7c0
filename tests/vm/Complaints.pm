# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What a kernel complains of in its log.
#
#   complaints(LOG)	the lines that say that something is wrong
#   others_races(LOG)	data races that are not ours, "A / B" => how often
#
# A kernel that looks for data races (KCSAN) finds those of Debian's own code as
# well, under any load.  A race is ours if one of the two accesses is made by a
# function of our modules, or by one that such a function calls for nothing else:
# lists, bitmaps, copies.  Functions of a module have its name behind them.  A kernel
# that has ktask built in ("-ktask-" in its release) names none: there ours are those
# that the sources of ktask define, and those that the series adds to its clients.  What
# the kernel's own functions do for a client counts as the kernel's.
#
# Where the test has memory refused to a module that is being loaded, the kernel
# warns of its own tracepoints, whose way back is not tested by anybody (Linux
# 6.12: event_define_fields(), and event_file_put() when they are removed).
#
# Before it lets a CPU go the kernel warns if that has more tasks than the stopper.
# Linux 6.12 counts the deadline server of ordinary tasks among them (inc_dl_tasks() of
# kernel/sched/deadline.c), whose timer may have started it again: then the list behind
# the warning names the stopper alone.  Stopping that server there it may warn once more,
# of bandwidth that it took off twice.

package Complaints;

use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Find qw(find);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(complaints others_races);

my $wrong = qr/WARNING:|BUG:|Oops|Kernel\ panic|general\ protection
	|rcu.*(?:stall|detected)|soft\ lockup|INFO:\ task|blocked\ for\ more
	|possible\ (?:circular|recursive)|inconsistent\ lock|suspicious\ RCU
	|KASAN|UBSAN|kmemleak:\ \d|refcount_t:|unable\ to\ handle/x;
my $refused = qr{Could not initialize trace point events/ktask};
my $tracing = qr{WARNING:.*\Q at kernel/trace/trace_events.c:\E\d+
	[ ]event_(?:define_fields|file_put)\+}x;
my $bandwidth = qr{^WARNING:.*\Q at kernel/sched/deadline.c:\E\d+ task_non_contending\+};
# Said at every boot where all is logged.
my $harmless = qr/^(?:Kernel\ c|C)ommand\ line:|stall\ warnings\ timeout\ set/x;
my $of_module = qr/\[ktask\w*\]/;
my $with_series = qr/^Linux version \S+-ktask-/;
my $servant = qr/^_*(?:list|hlist|bitmap|cpumask|find|mem|str)/;

# "[   12.345678] " and the like.
sub lines
{
	my ($log) = @_;

	return map { s/^\[[^\]]*\](?:\[[^\]]*\])?\s?//r } split /\r?\n/, $log;
}

# The names before the first parenthesis of lines that begin a definition.
sub functions_of
{
	my ($file) = @_;
	my $begins = $file =~ /\.patch$/ ? qr/^\+(?=[a-z])/m : qr/^(?=[a-z])/m;

	return slurp($file) =~ /$begins[\w\s*]*?\b(\w+)\(/mg;
}

# What a function of a kernel that ktask is built into begins with in a stack.
sub built_in_functions
{
	my @files;
	my ($ktask) = grep { -e "$_/Kbuild" } "$top/ktask", $top;

	find(sub { push @files, $File::Find::name if /\.(?:[ch]|patch)$/ },
	     grep { -e } map { "$ktask/$_" } qw(core engine kernel));
	my %names = map { $_ => 1 } map { functions_of($_) } @files;
	my $any = join '|', sort keys %names;

	return qr/^(?:$any)[.+]/;
}

# Each access is a line "read to 0x... of 8 bytes by ..." and its stack.
sub is_ours
{
	my ($ours, @report) = @_;
	my @stack;

	for my $line (@report, '') {
		if (@stack && $line !~ /^\s+\S/) {
			shift @stack while @stack > 1 && $stack[0] =~ $servant;
			return 1 if $stack[0] =~ $ours;
			@stack = ();
		}
		push @stack, $line =~ s/^\s+//r
			if $line =~ /^\s+\S+\+0x/;
	}
	return 0;
}

# Returns the log without reports of races that are not ours, and their titles.
sub sift
{
	my (@kept, @report, @titles);
	my @lines = lines(@_);
	my $ours = grep({ $_ =~ $with_series } @lines) ? built_in_functions() : $of_module;
	my $inside = 0;

	for my $line (@lines) {
		if ($line =~ /^BUG: KCSAN: [\w-]+ in (.*)/) {
			push @titles, $1;
			$inside = 1;
		}
		if (!$inside) {
			push @kept, $line;
			next;
		}
		push @report, $line;
		next unless $line =~ /^={10}/;
		if (is_ours($ours, @report)) {
			push @kept, @report;
			pop @titles;
		}
		@report = ();
		$inside = 0;
	}
	# One that the log ends in is judged by nobody: it counts.
	return ([@kept, @report], \@titles);
}

# Lines without warnings of a CPU that two tasks are said to be on, if only the stopper
# is listed, and of the bandwidth of that CPU's server; with what lockdep says of a
# warning under the scheduler's lock.
sub without_servers
{
	my @kept;

	while (defined(my $line = shift)) {
		my $from = $#kept;

		push @kept, $line;
		if ($line =~ /^ dl_server_stop\+/ && ($_[0] // '') =~ /^ sched_cpu_dying\+/) {
			$from-- while $from > 0 && $kept[$from] !~ /\[ cut here \]/;
			splice @kept, $from if grep { $_ =~ $bandwidth } @kept[$from .. $#kept];
			next;
		}
		next unless $line =~ /^CPU\d+ enqueued tasks \(2 total\)/
			&& ($_[0] // '') =~ m{^\s+pid: \d+, name: migration/\d+$}
			&& ($_[1] // '') !~ /^\s+pid: /;
		$from-- while $from > 0 && $kept[$from] !~ /\[ cut here \]/;
		splice @kept, $from if grep { /^Dying CPU not/ } @kept[$from .. $#kept];
	}
	return @kept;
}

sub complaints
{
	my ($log) = @_;
	my ($kept) = sift($log);
	my $expected = $log =~ $refused ? $tracing : qr/(?!)/;

	return grep { $_ =~ $wrong && $_ !~ $expected && $_ !~ $harmless }
		without_servers(@$kept);
}

sub others_races
{
	my (undef, $titles) = sift(@_);
	my %nr;

	$nr{$_}++ for @$titles;
	return %nr;
}

1;
