#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Setting the wall clock cannot change what ktask does, since nothing in the
# library, the operations or the shim reads it or waits by it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my @files = map { glob "$top/ktask/$_/*.[ch] $top/ktask/$_/*/*.[ch]" }
	qw(core user ops preload);
ok(@files > 20, 'there are sources');

my @named;
for my $file (@files) {
	open(my $in, '<', $file) or die "$file: $!\n";
	while (<$in>) {
		push @named, "$file:$.: $_"
			if /CLOCK_(REALTIME|TAI)|FUTEX_CLOCK_REALTIME
			   |clock_(?:gettime|getres|nanosleep)\(\s*\d
			   |syscall\(SYS_(?:clock_(?!nanosleep,\ CLOCK_MONOTONIC,)
					   |time|gettimeofday)/x;
	}
}
is_deeply(\@named, [], 'no source names such a clock, nor one by number');

# Reading, and waiting until a time of the wall clock.
my %asks = map { $_ => 1 } qw(time gettimeofday ftime timespec_get
	pthread_cond_timedwait pthread_mutex_timedlock sem_timedwait
	pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock mq_timedreceive
	alarm setitimer clock_settime cnd_timedwait mtx_timedlock mq_timedsend
	times select pselect);
for my $name ('libktask.so', 'libktask-preload.so') {
	my ($status, $said) = capture("nm -D -u $build/$name");
	my @wanted = map { /U (\w+)/ ? $1 : () } split /\n/, $said;

	is($status, 0, "$name can be read");
	ok((grep { $_ eq 'clock_gettime' } @wanted), "$name asks some clock");
	is_deeply([grep { $asks{$_} } @wanted], [], "$name asks no wall clock");
}

done_testing();
