#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# bench-cuda with a CUDA that is made up: each way of registering has its turn in each
# round, on memory that is as it says, and a launch that waits for a call is told.  What
# a real GPU takes is not known here.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $dir = scratch();
my $program = "$build/bench/bench-cuda";

my ($status, $said) = capture(($ENV{MAKE} || 'make') . " -s -C $top B=$build $program");
is($status, 0, 'it is built without CUDA') or diag($said);
($status, $said) = capture("readelf -dW $program");
unlike($said, qr/NEEDED.*cuda/, 'and needs none to start');

# A launch waits for the lock that a call to register has.  Such a call goes on once one
# does, so that it is seen however the threads are scheduled.
spew("$dir/cudart.c", <<'C');
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int waiting;
static int nr;
int cudaHostRegister(void *at, size_t len, unsigned flags)
{
	unsigned char first = 0;
	mincore(at, 4096, &first);
	fprintf(stderr, "register %zu %s\n", len >> 20,
		first & 1 ? "present" : "absent");
	pthread_mutex_lock(&lock);
	for (int i = 0; !waiting && i < 60000; i++)
		usleep(1000);
	usleep(len >> 20 == 64 ? 30000 : 1000);
	nr++;
	pthread_mutex_unlock(&lock);
	return 0;
}
int cudaHostUnregister(void *at)
{
	nr--;
	return 0;
}
int cudaGetDeviceCount(int *count)
{
	const char *said = getenv("GPUS");
	*count = said ? atoi(said) : 1;
	return *count < 0 ? 100 : 0;
}
int cudaSetDevice(int device) { return 0; }
int cudaMalloc(void **at, size_t len) { return !(*at = malloc(len)); }
int cudaFree(void *at) { return 0; }
int cudaStreamCreateWithFlags(void **at, unsigned flags) { return 0; }
int cudaStreamSynchronize(void *stream) { return 0; }
int launch_and_wait(void)
{
	waiting++;
	pthread_mutex_lock(&lock);
	waiting--;
	pthread_mutex_unlock(&lock);
	return 0;
}
int cudaMemsetAsync(void *at, int value, size_t len, void *stream)
{
	return launch_and_wait();
}
const char *cudaGetErrorString(int error) { return error == 100 ? "no device" : "?"; }
static void __attribute__((destructor)) tell_rest(void)
{
	fprintf(stderr, "%d left\n", nr);
}
C
spew("$dir/cuda.c", <<'C');
#include <string.h>
int launch_and_wait(void);
int cuModuleLoadData(void **module, const char *text)
{
	return !strstr(text, ".visible .entry nothing()") || !strstr(text, "sm_52");
}
int cuModuleGetFunction(void **func, void *module, const char *name)
{
	return strcmp(name, "nothing");
}
int cuLaunchKernel(void *func, unsigned a, unsigned b, unsigned c, unsigned d,
		   unsigned e, unsigned f, unsigned bytes, void *stream, void **args,
		   void **extra)
{
	return a * b * c * d * e * f != 1 ? 1 : launch_and_wait();
}
C
($status, $said) = capture("$cc -shared -fPIC -pthread -o $dir/libcudart.so.12 $dir/cudart.c "
	. "&& mkdir $dir/driver && $cc -shared -fPIC -o $dir/driver/libcuda.so.1 $dir/cuda.c "
	. "-L$dir -l:libcudart.so.12");
is($status, 0, 'a runtime and a driver are made up') or diag($said);

sub bench
{
	my ($environment, @args) = @_;

	return capture("LD_LIBRARY_PATH=$dir $environment timeout 120 $program @args");
}

($status, $said) = bench('', '64 3 10');
is($status, 0, 'it finds the runtime, and runs') or diag($said);
my @calls = $said =~ /^register (\d+ \w+)$/mg;
my @sides = grep { $_ } map { /^64 absent/ ? 'plain' : /^64 present/ ? 'populated' : '' }
	@calls;
is_deeply(\@sides, [qw(plain populated populated plain plain populated)],
	  'one call for all, of absent and of populated memory, in each round');
my @pieces = grep { !/^64 / } @calls;
my $sum = 0;
$sum += (split)[0] for @pieces;
is($sum, 3 * 64, 'ktask_register() has registered all in each round');
is(scalar(grep { !/present/ } @pieces), 0, 'pages that had been made');
like($said, qr/^0 left$/m, 'nothing stays registered');
like($said, qr/a launch is the setting of 4 bytes/, 'without a driver memory is set');
my %longest;
for (split /\n/, $said) {
	our $side = $1 if /^  (\w\S+\(\).*?)  /;
	$longest{$side} = $1 if /longest launch meanwhile +([\d.]+) ms/;
}
cmp_ok($longest{'cudaHostRegister(), one call'}, '>=', 30,
       'a launch that waited for the one call is told');
is(scalar keys %longest, 3, 'and the longest of each way');
like($said, qr/^  ktask_register\(\) +[\d.]+ ms +[\d.]+ times as fast$/m,
     'it is told how many times as fast ktask_register() is');

($status, $said) = bench("LD_LIBRARY_PATH=$dir:$dir/driver", '64 1');
is($status, 0, 'with a driver') or diag($said);
like($said, qr/a launch is an empty kernel/, 'an empty kernel is launched');

($status, $said) = bench('', "--library $dir/libcudart.so.12 64 1");
is($status, 0, 'the runtime can be named') or diag($said);
for (['GPUS=0', 'there is none'], ['GPUS=-1', 'no device']) {
	($status, $said) = bench($_->[0], '64 1');
	is($status, 1, "$_->[0]: it ends");
	like($said, qr/^bench-cuda: looking for a GPU: $_->[1]$/m, 'and says why');
}
($status, $said) = bench('', "--library $dir/missing.so");
is($status, 1, 'without a runtime it ends');
like($said, qr/^bench-cuda: loading libcudart: .*missing\.so/m, 'and says why');
for ('0', '64 0', '64 x', '64 1 5000', '1 2 3 4') {
	is((bench('', $_))[0], 2, "bench-cuda $_ is refused");
}

done_testing();
