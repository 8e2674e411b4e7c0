#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Shows tests/vm/Complaints.pm logs of kernels, with and without data races of
# our modules.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../vm";
use Complaints;
use Test::More;

my $bar = '=' x 66;

sub race
{
	my ($title, $one, $other) = @_;

	return join '', map { "[   17.123456] $_\r\n" } $bar,
		"BUG: KCSAN: data-race in $title", '',
		'read-write to 0xffff8880 of 8 bytes by task 95 on cpu 1:',
		(map { " $_" } @$one), '',
		'read to 0xffff8880 of 8 bytes by task 90 on cpu 0:',
		(map { " $_" } @$other), '',
		'Reported by Kernel Concurrency Sanitizer on:',
		'CPU: 0 UID: 0 PID: 90 Comm: init Not tainted', $bar;
}

my @kernel = ('try_to_wake_up+0x10/0x20', 'pool_offer+0x1/0x2 [ktask]',
	'ktask_run+0x1/0x2 [ktask]');
my @ours = ('helper_work+0x10/0x20 [ktask]', 'kthread+0x1/0x2');
my @by_list = ('__list_add_valid_or_report+0x10/0x20',
	'helper_idle+0x1/0x2 [ktask]', 'kthread+0x1/0x2');
my @by_test = ('board_chunk+0x10/0x20 [ktask_test]', 'kthread+0x1/0x2');

is(complaints("[    1.0] Linux version\r\n[    2.0] all is well\r\n"
	. "[    3.0] kcsan: non-strict mode configured - use CONFIG_KCSAN_STRICT"),
	0, 'a quiet log is no complaint');
is(complaints("[    1.0] WARNING: CPU: 0\n"), 1, 'a warning is one');

my $tracing = '[    1.0] WARNING: CPU: 1 PID: 1 at kernel/trace/trace_events.c:2628 '
	. "event_define_fields+0x1ac/0x1e0\r\n";
my $refused = "[    1.1] Could not initialize trace point events/ktask_lend\r\n";

is(complaints($tracing), 1, 'tracepoints of a module must be defined');
is(complaints($tracing . $refused), 0, 'not where memory was refused to it');
is(complaints($refused . "[    1.2] WARNING: CPU: 1 PID: 1 at kernel/x.c:1 f+0x1"),
	1, 'which excuses nothing else');

my $dying = join '', map { "[    1.0] $_\r\n" } '------------[ cut here ]------------',
	'Dying CPU not properly vacated!',
	'WARNING: CPU: 3 PID: 33 at kernel/sched/core.c:8365 sched_cpu_dying+0x1/0x2',
	'CPU3 enqueued tasks (2 total):', "\tpid: 33, name: migration/3";

is(complaints($dying), 0, 'the deadline server is on the dying CPU');
is(complaints("[    0.1] WARNING: a\n$dying"), 1, 'what was said before counts');
is(complaints("${dying}[    1.0] \tpid: 168, name: ktask/0\r\n"), 1,
   'no helper may be');

my $stopped = join '', map { "[    1.0] $_\r\n" } '------------[ cut here ]------------',
	'dl_rq->running_bw > old',
	'WARNING: CPU: 5 PID: 50 at kernel/sched/deadline.c:265 task_non_contending+0x1/0x2',
	'Call Trace:', ' <TASK>', ' ? sched_clock+0x1/0x2', ' dl_server_stop+0x1/0x2';
my $dies = "[    1.0]  sched_cpu_dying+0x1/0x2\r\n";

is(complaints("$stopped$dies"), 0, 'the server of a dying CPU is stopped');
is(complaints("${stopped}[    1.0]  schedule+0x1/0x2\r\n"), 1, 'of no other');
is(complaints($stopped =~ s/deadline|task_non_contending/core/gr . $dies), 1,
   'and nothing else is wrong with it');

is(complaints("[    1.0] BUG: KASAN: use-after-free in x\n"), 1,
	'so is freed memory');

my $others = race('try_to_wake_up / schedule', \@kernel, ['schedule+0x1/0x2']);
is(complaints($others), 0, 'a race of the kernel with itself is none');
is_deeply({ others_races($others . $others) },
	{ 'try_to_wake_up / schedule' => 2 }, 'but it is listed and counted');
ok(complaints($others . "[    9.0] BUG: kernel NULL pointer\n"),
	'what follows it is heard');

for my $case (['ours', \@ours], ['one by a list of ours', \@by_list],
	      ['one of our tests', \@by_test]) {
	my ($name, $stack) = @$case;

	ok(complaints(race('a / b', $stack, \@kernel)), "$name first is heard");
	ok(complaints(race('a / b', \@kernel, $stack)), "$name last is heard");
}
# Built into the kernel ours have no name of a module behind them.
my $with_series = "[    0.0] Linux version 6.12.117-ktask-0123456789ab\r\n";
my @idle = ('schedule+0x1/0x2');

for my $case (['a built-in one', 'pool_submit+0x10/0x20', 'exit_mmap+0x1/0x2'],
	      ['a compiler\'s part of one', 'work_on_item.isra.0+0x1/0x2'],
	      ['one by a list of a client', '__list_add_valid_or_report+0x10/0x20',
	       'zap_chunk+0x1/0x2'],
	      ['one of VFIO', 'vfio_pin_map_chunk+0x1/0x2', 'kt_context_work+0x1/0x2']) {
	my ($name, @stack) = @$case;

	ok(complaints($with_series . race('a / b', \@stack, \@idle)), "$name first is heard");
	ok(complaints($with_series . race('a / b', \@idle, \@stack)), "$name last is heard");
	is(complaints(race('a / b', \@stack, \@idle)), 0,
	   "$name is a name like others where ktask is a module");
}
is(complaints($with_series . race('a / b', \@idle, ['unmap_page_range+0x1/0x2',
	'zap_chunk+0x1/0x2'])), 0, 'what the kernel does for a client is the kernel\'s own');
my $cut = race('a / b', \@kernel, \@kernel);
$cut =~ s/Reported.*//s;
ok(complaints($cut), 'a report that is cut off is heard');
done_testing();
