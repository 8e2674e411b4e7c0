#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A program that was built with an older header, or with a newer one, runs with
# the libraries as they are: of the headers here some are made in which each
# structure with a size lacks its last field, or has one more.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

# Of these all fields must be there: they have no older version.
my %structs = (
	'ktask/ktask.h' => [qw(ktask_ctl ktask_result ktask_autotune
		ktask_progress ktask_limit ktask_job_info ktask_permits_info)],
	'ktask/ops.h' => [qw(ktask_opts ktask_op_args ktask_file ktask_engine)],
	'ktask/monitor.h' => [qw(ktask_monitor)],
	'ktask/register.h' => [qw(ktask_register_ctl ktask_registration_info
		ktask_uring_buffers ktask_iommu ktask_verbs ktask_cuda)],
	'ktask/uffd.h' => [qw(ktask_uffd_ctl)],
	'ktask/runtime.h' => [qw(ktrt_attr ktrt_options ktrt_info
		ktrt_reduction)],
	'umt.h' => [qw(umt_options umt_backends)],
);
my %only_grows = map { $_ => 1 } qw(ktask_monitor ktask_file
	ktask_uring_buffers ktask_iommu ktask_verbs ktask_cuda);
# Fields that an older version lacks, where one is too few: padding would follow,
# and the size be the same.
my %nr_lacking = (ktask_permits_info => 2);
my %is_filled = map { $_ => 1 } qw(ktask_result ktask_registration_info
	ktrt_info umt_backends ktask_progress ktask_limit ktask_job_info
	ktask_permits_info ktask_engine);
my $dir = scratch();

# Whoever adds a structure with a size adds it here.
my @with_size;
for my $header (glob("$top/*/include/*.h $top/*/include/ktask/*.h")) {
	push @with_size, slurp($header)
		=~ /^struct (\w+) \{\n\tsize_t (?:struct_)?size;/mg;
}
is_deeply([sort @with_size], [sort map { @$_ } values %structs],
	  'every structure with a size is tested');

# Those without one say that they never change, and have these sizes for good.
my %constant = (ktask_node => 24, ktask_node_result => 32, ktrt_dep => 24,
	umt_core => 64, umt_counts => 16, umt_event => 24);
my @without_size;
for my $header (glob("$top/*/include/*.h $top/*/include/ktask/*.h")) {
	my $text = slurp($header);

	push @without_size, $1 while $text
		=~ /^struct (\w+) \{\n(?!\tsize_t (?:struct_)?size;)/mg;
}
is_deeply([sort @without_size], [sort keys %constant],
	  'every other structure is known to be constant');
for my $struct (sort keys %constant) {
	my ($header) = grep { slurp($_) =~ /^struct \Q$struct\E \{/m }
		glob("$top/*/include/*.h $top/*/include/ktask/*.h");

	like(slurp($header), qr{Never\s(?:\s\*\s)?changes[:,](?:(?!\*/).)*\*/\n
		struct\s\Q$struct\E\s\{}sx, "$struct says why");
}
spew("$dir/constant.c", join '', "#include <ktask/ktask.h>\n",
	"#include <ktask/runtime.h>\n#include <umt.h>\n",
	map { "_Static_assert(sizeof(struct $_) == $constant{$_}, \"$_\");\n" }
	sort keys %constant);
{
	my ($status, $output) = capture("$cc -std=gnu11 -fsyntax-only "
		. "$dir/constant.c " . join ' ', map { "-I$_" }
		glob("$top/*/include"));

	is($status, 0, 'they have the sizes that they had') or diag($output);
}

sub without_last
{
	my ($struct, $body) = @_;

	# Comments may hold semicolons.
	$body =~ s{/\*.*?\*/}{}gs;
	for (1 .. $nr_lacking{$struct} // 1) {
		$body =~ s/[^;]*;\s*\z// or die $struct;
	}
	$body .= "\n";
	return $body;
}

# The headers of version $kind, "older", "same" or "newer"; where they are.
sub headers_of
{
	my ($kind) = @_;

	system("mkdir $dir/$kind && cp -r $top/*/include/. $dir/$kind")
		and die;
	for my $header (keys %structs) {
		my $text = slurp("$dir/$kind/$header");

		for my $struct (@{$structs{$header}}) {
			next if $kind eq 'older' && $only_grows{$struct};
			$text =~ s{^(struct $struct \{\n)(.*?)(^\};)}
				{$1 . ($kind eq 'older' ? without_last($struct, $2)
				     : $kind eq 'newer'
				     ? "$2\tunsigned long added_later;\n"
				     : $2) . $3}mse or die $struct;
		}
		# Its initializers knew no more.
		$text =~ s/,\s*\{ (?:0, )*0 \} \}/ }/g if $kind eq 'older';
		spew("$dir/$kind/$header", $text);
	}
	return "$dir/$kind";
}

my $common = <<'C';
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#ifdef ADDED
#define SET(it) ((it).added_later = ADDED)
#define IS_ZERO(it) ((it).added_later == 0)
#else
#define SET(it) ((void)0)
#define IS_ZERO(it) 1
#endif
#define SAY(name, call)                                                     \
	do {                                                                \
		int said = (call);                                          \
		printf("%s %zu %d\n", #name, sizeof(struct name), said);    \
	} while (0)
C
my %programs = (ktask => $common . <<'C', umt => $common . <<'C', ktrt => $common . <<'C');
#include <ktask/ktask.h>
#include <ktask/monitor.h>
#include <ktask/ops.h>
#include <ktask/register.h>
#include <ktask/uffd.h>
#include <fcntl.h>
#include <unistd.h>
static char page[4096];
static int chunk(void *start, void *end, void *arg)
{
	return 0;
}
static int use(void *arg)
{
	return 0;
}
static void leave(void *arg)
{
}
static int run(void)
{
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 1);
	SET(ctl);
	return ktask_run(NULL, 100, &ctl);
}
static int run_with_result(void)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 1);
	SET(result);
	ktask_ctl_set_result(&ctl, &result);
	if (ktask_run(NULL, 100, &ctl) || result.units != 100)
		return 1;
	return IS_ZERO(result) ? 0 : 2;
}
static int poll_job(void)
{
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct ktask_job *job;
	DEFINE_KTASK_CTL(ctl, chunk, NULL, 1);
	SET(progress);
	if (ktask_start(&job, NULL, 100, &ctl))
		return 1;
	int error = ktask_poll(job, &progress);
	if (ktask_wait(job) || progress.units_total != 100)
		return 3;
	if (error && error != -EINPROGRESS)
		return error;
	return IS_ZERO(progress) ? 0 : 2;
}
static int list_limits(void)
{
	struct ktask_limit limits[4] = { KTASK_LIMIT_INIT };
	SET(limits[0]);
	SET(limits[1]);
	int nr = ktask_limits(limits, 4);
	if (nr < 2 || strcmp(limits[0].name, "cpus") ||
	    strcmp(limits[1].name, "affinity") || !limits[1].threads)
		return 1;
	return IS_ZERO(limits[0]) && IS_ZERO(limits[1]) ? 0 : 2;
}
static int list_jobs(void)
{
	struct ktask_job_info jobs[2] = { KTASK_JOB_INFO_INIT };
	SET(jobs[0]);
	int nr = ktask_jobs(jobs, 2, NULL);
	if (nr < 0)
		return nr;
	return nr && !IS_ZERO(jobs[0]) ? 2 : 0;
}
static int count_permits(void)
{
	struct ktask_permits_info permits = KTASK_PERMITS_INFO_INIT;
	SET(permits);
	if (ktask_jobs(NULL, 0, &permits) < 0 || permits.used > permits.limit)
		return 1;
	return IS_ZERO(permits) ? 0 : 2;
}
static int ask_engine(void)
{
	struct ktask_engine engine = KTASK_ENGINE_INIT;
	SET(engine);
	if (ktask_op_engine(ktask_op_find("populate"), &engine) || !engine.name)
		return 1;
	return IS_ZERO(engine) ? 0 : 2;
}
static int learn(void)
{
	struct ktask_autotune tuned = KTASK_AUTOTUNE_INIT, known = tuned;
	strcpy(tuned.name, "a");
	tuned.threads = tuned.max_threads = 2;
	SET(tuned);
	int error = ktask_autotune_put(&tuned, NULL, 0);
	if (error)
		return error;
	return ktask_autotune_get("a", &known) || known.threads != 2;
}
static int operate(void)
{
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	args.addr = page;
	args.len = sizeof(page);
	SET(opts);
	return ktask_op_run(ktask_op_find("fill"), &args, &opts);
}
static int operate_by_args(void)
{
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;
	args.addr = page;
	args.len = sizeof(page);
	SET(args);
	return ktask_op_run(ktask_op_find("fill"), &args, NULL);
}
static int warm(void)
{
	struct ktask_file files[2] = { KTASK_FILE_INIT, KTASK_FILE_INIT };
	struct ktask_op_args args = KTASK_OP_ARGS_INIT;
	files[0].path = files[1].path = "/proc/self/exe";
	SET(files[1]);
	args.files = files;
	args.nr_files = 2;
	int error = ktask_op_run(ktask_op_find("warm"), &args, NULL);
	return error ? error : files[0].size != files[1].size;
}
static int watch(void)
{
	struct ktask_monitor monitor = { .struct_size = sizeof(monitor),
		.add = use, .remove = leave, .ready = use, .fd = -1,
		.drain = leave };
	SET(monitor);
	return ktask_set_monitor(&monitor);
}
static int accept(void *start, void *end, void *arg)
{
	return 0;
}
static struct ktask_registration *registration;
static int keep(void)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	ctl.register_func = accept;
	ctl.unregister_func = accept;
	SET(ctl);
	return ktask_register(&registration, page, sizeof(page), &ctl, NULL);
}
static int tell(void)
{
	struct ktask_registration_info info = KTASK_REGISTRATION_INFO_INIT;
	SET(info);
	if (!registration)
		return 0;
	if (ktask_registration_info_get(registration, &info) ||
	    info.bytes != sizeof(page))
		return 1;
	return IS_ZERO(info) ? 0 : 2;
}
/* Whether there is such a device is not the question. */
static int keep_refusal(int error)
{
	return error == -EINVAL || error == -E2BIG ? error : 0;
}
static int use_uring(void)
{
	struct ktask_uring_buffers buffers = KTASK_URING_BUFFERS_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	buffers.ring_fd = 0;
	SET(buffers);
	return keep_refusal(ktask_register_uring(&ctl, &buffers));
}
static int use_iommu(void)
{
	struct ktask_iommu iommu = KTASK_IOMMU_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	iommu.fd = 0;
	SET(iommu);
	return ktask_register_vfio(&ctl, &iommu);
}
static int use_verbs(void)
{
	struct ktask_verbs verbs = KTASK_VERBS_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ibv_mr *mr = NULL;
	verbs.pd = (void *)page;
	verbs.mr_bytes = verbs.nr_mrs = 1;
	verbs.mrs = &mr;
	SET(verbs);
	return keep_refusal(ktask_register_verbs(&ctl, &verbs));
}
static int use_cuda(void)
{
	struct ktask_cuda cuda = KTASK_CUDA_INIT;
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	SET(cuda);
	return keep_refusal(ktask_register_cuda(&ctl, &cuda));
}
static int give(void *buf, size_t len, uint64_t offset, void *arg)
{
	return 0;
}
static int fill_nothing(void)
{
	struct ktask_uffd_ctl fill = KTASK_UFFD_CTL_INIT;
	int ends[2];
	if (pipe2(ends, O_NONBLOCK))
		return 1;
	fill.uffd = ends[0];
	fill.addr = (void *)0x10000;
	fill.source_func = give;
	SET(fill);
	return ktask_uffd_fill(&fill, NULL);
}
int main(void)
{
	SAY(ktask_uffd_ctl, fill_nothing());
	SAY(ktask_register_ctl, keep());
	SAY(ktask_registration_info, tell());
	SAY(ktask_uring_buffers, use_uring());
	SAY(ktask_iommu, use_iommu());
	SAY(ktask_verbs, use_verbs());
	SAY(ktask_cuda, use_cuda());
	SAY(ktask_ctl, run());
	SAY(ktask_result, run_with_result());
	SAY(ktask_autotune, learn());
	SAY(ktask_progress, poll_job());
	SAY(ktask_limit, list_limits());
	SAY(ktask_job_info, list_jobs());
	SAY(ktask_permits_info, count_permits());
	SAY(ktask_engine, ask_engine());
	SAY(ktask_opts, operate());
	SAY(ktask_op_args, operate_by_args());
	SAY(ktask_file, warm());
	SAY(ktask_monitor, watch());
	return 0;
}
C
#include <umt.h>
static int open_user(void)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = UMT_EXPLICIT };
	struct umt *user;
	SET(options);
	int error = umt_open(&user, &options);
	if (!error)
		umt_close(user);
	return error;
}
static int ask(void)
{
	struct umt_backends info = { .size = sizeof(info) };
	SET(info);
	int error = umt_info(&info);
	if (error || !info.backend)
		return 1;
	return IS_ZERO(info) ? 0 : 2;
}
int main(void)
{
	SAY(umt_options, open_user());
	SAY(umt_backends, ask());
	return 0;
}
C
#include <ktask/runtime.h>
static int nr;
static int count(void *arg)
{
	__atomic_add_fetch(&nr, 1, __ATOMIC_RELAXED);
	return 0;
}
static int start(void)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	SET(options);
	int error = ktrt_start(&options);
	return error ? error : ktrt_stop();
}
static int spawn(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	SET(attr);
	int error = ktrt_spawn_attr(count, NULL, &attr);
	return error ? error : ktrt_wait() || nr != 1;
}
static int ask(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;
	SET(info);
	if (ktrt_info_get(&info) || !info.workers)
		return 1;
	return IS_ZERO(info) ? 0 : 2;
}
static void add(void *data, void *copy, void *arg)
{
	*(int *)data += *(int *)copy;
}
static struct ktrt_reduction reduction = KTRT_REDUCTION_INIT;
static int add_one(void *arg)
{
	++*(int *)ktrt_reduction_copy(&reduction);
	return 0;
}
static int reduce(void)
{
	int sum = 0;
	struct ktrt_dep dep = { &reduction, 0, KTRT_REDUCTION };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	reduction.data = &sum;
	reduction.bytes = sizeof(sum);
	reduction.combine = add;
	SET(reduction);
	attr.deps = &dep;
	attr.nr_deps = 1;
	int error = ktrt_spawn_attr(add_one, NULL, &attr);
	return error ? error : ktrt_wait() || sum != 1;
}
int main(void)
{
	SAY(ktrt_options, start());
	if (ktrt_start(NULL))
		return 1;
	SAY(ktrt_attr, spawn());
	SAY(ktrt_info, ask());
	SAY(ktrt_reduction, reduce());
	return ktrt_stop();
}
C

# What the programs say with those headers: by structure its size and the code.
sub said_with
{
	my ($kind, $include, $flags) = @_;
	my %said;

	for my $lib (sort keys %programs) {
		my $program = "$dir/$lib.$kind";

		spew("$program.c", $programs{$lib});
		# Some initializers have one 0 more than the older structure fields.
		my ($status, $output) = capture("$cc -std=gnu11 -w -I$include "
			. "$flags -o $program $program.c -L$build -l$lib "
			. "-Wl,-rpath,$build -Wl,-rpath-link,$build "
			. "&& XDG_CACHE_HOME=$dir/cache $program");
		is($status, 0, "$lib, $kind") or diag($output);
		$said{$1} = [$2, $3] while $output =~ /^(\w+) (\d+) (-?\d+)$/mg;
	}
	return \%said;
}

mkdir "$dir/cache" or die;
my $newer = headers_of('newer');
my %said = (
	same => said_with('same', headers_of('same'), ''),
	older => said_with('older', headers_of('older'), ''),
	newer => said_with('newer', $newer, '-DADDED=0'),
	asking => said_with('asking', $newer, '-DADDED=1'),
);
my $e2big = -7;
for my $struct (sort @with_size) {
	my ($same, $older, $newer, $asking) =
		map { $said{$_}{$struct} // [0, 'nothing'] }
		qw(same older newer asking);

	is($same->[1], 0, "$struct of this version is served");
	is($older->[1], 0, "$struct of an older version is served");
	is($newer->[1], 0, "$struct of a newer version is served");
	is($asking->[1], $is_filled{$struct} ? 0 : $e2big,
	   "$struct that has more in it is " .
	   ($is_filled{$struct} ? 'filled' : 'refused'));
	cmp_ok($older->[0], '<', $same->[0], "$struct was shorter")
		unless $only_grows{$struct};
	cmp_ok($newer->[0], '>', $same->[0], "$struct was longer");
}
done_testing();
