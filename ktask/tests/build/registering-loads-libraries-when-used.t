#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# libibverbs and libcudart are needed by those who register with their devices, and
# by nobody else.  Here both are made up: what they are called with, that their
# errors come through, and that all is taken back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $dir = scratch();

sub compiles
{
	my ($what, $command) = @_;
	my ($status, $said) = capture($command);

	is($status, 0, $what) or diag($said);
}

my (undef, $needed) = capture("readelf -dW $build/libktask.so");
unlike($needed, qr/NEEDED.*(?:ibverbs|cuda)/, 'the library needs neither');

my $program = "$dir/registers";
spew("$program.c", <<'C');
#include <ktask/register.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define LEN (10 << 20)
#define MR_BYTES (3 << 20)
static struct ktask_registration *registration;
static struct ktask_result result = KTASK_RESULT_INIT;
static char *name;
static void *loaded;
static void (*between)(void);
static void lose_name(void)
{
	memset(name, '?', strlen(name));
	free(name);
}
static void lose_library(void)
{
	dlclose(loaded);
}
static int attempt(struct ktask_register_ctl *ctl, void *at)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	opts.result = &result;
	opts.max_threads = 1;
	int error = ktask_register(&registration, at, LEN, ctl, &opts);
	if (between)
		between();
	printf("register %d at %zu\n", error, error ? result.fail_offset : 0);
	if (!error)
		printf("unregister %d\n", ktask_unregister(&registration, NULL));
	return error;
}
int main(int argc, char **argv)
{
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ibv_mr *mrs[4] = { 0 };
	struct ktask_verbs verbs = { .struct_size = sizeof(verbs),
		.pd = (void *)0x1000, .access = 5,
		.addr = at, .mr_bytes = MR_BYTES, .mrs = mrs, .nr_mrs = 4 };
	struct ktask_cuda cuda = { .struct_size = sizeof(cuda), .flags = 2 };
	int error;
	if (!strcmp(argv[1], "verbs")) {
		if (argc > 2)
			verbs.nr_mrs = 2;
		error = ktask_register_verbs(&ctl, &verbs);
		if (!error && !attempt(&ctl, at))
			for (int i = 0; i < 4; i++)
				error |= mrs[i] != NULL;
	} else {
		if (argc > 3 && !strcmp(argv[3], "closed")) {
			loaded = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
			between = lose_library;
		} else if (argc > 3) {
			cuda.library = name = strdup(argv[2]);
			between = lose_name;
		} else if (argc > 2)
			cuda.library = argv[2];
		error = ktask_register_cuda(&ctl, &cuda);
		ctl.unit_bytes = ctl.max_piece_bytes = MR_BYTES;
		if (!error)
			attempt(&ctl, at);
		if (cuda.cuda_error)
			printf("cuda says %d\n", cuda.cuda_error);
	}
	if (error)
		printf("%s\n", strerror(-error));
	return error != 0;
}
C
compiles('a program is made', "$cc -g -I$top/ktask/include -o $program "
	. "$program.c -L$build -lktask -Wl,-rpath,$build");

# Without them, also where the machine has them.
spew("$dir/empty.c", "int nothing;\n");
for my $name (qw(libibverbs.so.1 libcudart.so.13 libcudart.so.12
		 libcudart.so.11.0 libcudart.so)) {
	compiles("an empty $name", "mkdir -p $dir/without && $cc -shared "
		. "-o $dir/without/$name $dir/empty.c");
}
for my $device (qw(verbs cuda)) {
	my ($status, $said)
		= capture("LD_LIBRARY_PATH=$dir/without $program $device");
	like($said, qr/^Can not access a needed shared library$/m,
	     "$device: it is told that the library is missing");
}

spew("$dir/verbs.c", <<'C');
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
static char regions[64];
static int nr;
void *ibv_reg_mr(void *pd, void *at, size_t len, int access)
{
	const char *fail = getenv("FAIL_AT");
	if (fail && nr == atoi(fail)) {
		errno = ENOMEM;
		return NULL;
	}
	printf("reg_mr %d %zu %d\n", pd == (void *)0x1000, len, access);
	return &regions[nr++];
}
int ibv_dereg_mr(void *mr)
{
	printf("dereg_mr %d\n", (int)((char *)mr - regions));
	return getenv("BUSY") ? EBUSY : 0;
}
C
compiles('verbs that are made up', "mkdir -p $dir/with && $cc -shared -fPIC "
	. "-o $dir/with/libibverbs.so.1 $dir/verbs.c");
spew("$dir/cuda.c", <<'C');
#include <stdio.h>
#include <stdlib.h>
static int nr;
int cudaHostRegister(void *at, size_t len, unsigned flags)
{
	const char *fail = getenv("FAIL_AT");
	if (fail && nr == atoi(fail))
		return atoi(getenv("CODE"));
	printf("host_register %d %zu %u\n", nr++, len, flags);
	return 0;
}
int cudaHostUnregister(void *at)
{
	printf("host_unregister\n");
	return 0;
}
C
compiles('CUDA that is made up', "$cc -shared -fPIC "
	. "-o $dir/with/libcudart.so.12 $dir/cuda.c");
system("cp $dir/with/libcudart.so.12 $dir/libother.so") and die;

sub said_with
{
	my ($environment, @args) = @_;
	my (undef, $said) = capture(
		"LD_LIBRARY_PATH=$dir/with $environment $program @args");

	return [split /\n/, $said];
}

my @regions = (3 << 20, 3 << 20, 3 << 20, 1 << 20);
my $said = said_with('', 'verbs');
is_deeply([sort @$said], [sort((map { "reg_mr 1 $_ 5" } @regions),
	  'register 0 at 0', 'unregister 0', map { "dereg_mr $_" } 0 .. 3)],
	  'verbs: each region is registered, and taken back');
is_deeply(said_with('FAIL_AT=2', 'verbs'),
	  ["reg_mr 1 $regions[0] 5", "reg_mr 1 $regions[1] 5",
	   'dereg_mr 1', 'dereg_mr 0', 'register -12 at 6291456'],
	  'verbs: an error comes through, the last region is taken back first');
is_deeply(said_with('', 'verbs few'),
	  ["reg_mr 1 $regions[0] 5", "reg_mr 1 $regions[1] 5",
	   'dereg_mr 1', 'dereg_mr 0', 'register -28 at 6291456'],
	  'verbs: without room for all regions there is none');
is_deeply([grep { /^unreg/ } @{said_with('BUSY=1', 'verbs')}],
	  ['unregister -16'], 'verbs: a region in use is told');

my @pieces = map { "host_register $_ $regions[$_] 2" } 0 .. 3;
is_deeply(said_with('', 'cuda'),
	  [@pieces, 'register 0 at 0', ('host_unregister') x 4,
	   'unregister 0'], 'CUDA: in order');
is_deeply(said_with('', "cuda $dir/libother.so"),
	  [@pieces, 'register 0 at 0', ('host_unregister') x 4,
	   'unregister 0'], 'CUDA: by a library that is named');
for my $lost (qw(renamed closed)) {
	is_deeply(said_with('', "cuda $dir/libother.so $lost"),
		  [@pieces, 'register 0 at 0', ('host_unregister') x 4,
		   'unregister 0'],
		  "CUDA: its name or its handle may go meanwhile: $lost");
}
my %codes = (1 => -22, 2 => -12, 100 => -19, 712 => -16, 801 => -95, 999 => -5);
for my $code (sort keys %codes) {
	is_deeply(said_with("FAIL_AT=1 CODE=$code", 'cuda'),
		  [$pieces[0], 'host_unregister',
		   "register $codes{$code} at 3145728", "cuda says $code"],
		  "CUDA: $code comes through");
}

done_testing();
