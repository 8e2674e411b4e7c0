#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The shim and the launcher for 64-bit ARM, which have assembler of their own
# (util/raw_syscalls.h): they compile without a warning, and under an emulator programs
# end with the shim as they do without, and the launcher starts them.  Skips where there is no such compiler (gcc-aarch64-linux-gnu), the
# second part where there is no emulator (qemu-user).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $target = 'aarch64-linux-gnu';
my $compiler = "$target-gcc -std=gnu11 -O2 -Wall -Wextra -Werror "
	. '-Wno-unused-parameter -Wno-format-truncation -fno-strict-aliasing '
	. '-fvisibility=hidden -D_GNU_SOURCE -I. -I.. -Iinclude -Iuser/port -pthread';
my $dir = scratch();

plan skip_all => "no $target-gcc" unless have("$target-gcc");

sub builds
{
	my ($what, $arguments) = @_;
	my ($status, $said) = capture("cd $top/ktask && $compiler $arguments");

	is($status, 0, $what) or diag($said);
}

builds('the shim', "-fPIC -shared -Wl,-z,defs -o $dir/shim.so core/*.c user/*.c user/*/*.c "
	. 'engine/*.c ops/*.c ahead/*.c preload/*/*.c util/*.c -ldl');
builds('a program', "-Itests/preload -o $dir/exit-cases "
	. 'tests/preload/exit-cases.c -ldl');
builds('the launcher', "-O1 -ffreestanding -fno-builtin -fno-stack-protector -fno-pie "
	. "-static -nostdlib -no-pie -o $dir/ktask launch/launcher.c");
my (undef, $code) = capture("$target-objdump -d $dir/shim.so");
like($code, qr/\bsvc\b/, 'makes system calls of its own');

# Status and output of a program; with --exit-cases given the shim or none.
sub run_case
{
	my ($case, @environment) = @_;

	return join ' ', capture("cd $dir && timeout 60 qemu-aarch64 "
		. "-L /usr/$target " . join(' ', map { "-E $_" } @environment)
		. " ./exit-cases $case");
}

SKIP: {
	skip 'no qemu-aarch64', 9 unless have('qemu-aarch64');
	spew("$dir/libktask-preload.so", '');
	spew("$dir/program", "#!/bin/sh\necho \"\$KTASK_RUN_OPS \$LD_PRELOAD \$*\"\n", 0755);
	like((capture("cd $dir && env -u LD_PRELOAD -u KTASK_RUN_OPS -u KTASK_RUN_REPORT timeout 60 "
		. 'qemu-aarch64 ./ktask run ./program a b 2>/dev/null'))[1],
	     qr{^ahead \S*/libktask-preload.so a b$}m, 'the launcher starts a program');
	for my $case (qw(main exit _exit quick)) {
		my $plain = run_case($case);
		my $report = "$dir/report-$case";

		like($plain, qr/^3 /, "$case: ends");
		is(run_case($case, "LD_PRELOAD=$dir/shim.so",
			    'KTASK_RUN_MIN=1048576', 'KTASK_RUN_OPS=exit',
			    "KTASK_RUN_REPORT=$report"),
		   $plain, "$case: as without the shim");
		note(-e $report ? slurp($report) : 'nothing was taken');
	}
}

done_testing();
