#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# For each feature that the build detects: it is found where it is, and not found
# without its tool, its header or its library, one at a time.  A feature that
# this machine lacks anyway is skipped; none is forgotten.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Missing;
use Test::More;

my $make = 'env -u MAKEFLAGS -u MFLAGS -u B ' . ($ENV{MAKE} || 'make')
	. " --no-print-directory -C $top OPT=-O0";
my @features = split ' ', (slurp("$top/scripts/features") =~ /^all='([^']+)'/m)[0];
my $dir = scratch();
my $number = 0;

# A tool that does what its first argument asks for, and no more.
my $only_showme = spew("$dir/mpicc", '#!/bin/sh
case $1 in --showme:compile) echo ;; --showme:link) echo -lmpi ;; *) exit 1 ;; esac
', 0755);
my $false = spew("$dir/bpftool", "#!/bin/sh\nexit 1\n", 0755);
my $no_target = spew("$dir/clang-without-bpf", '#!/bin/sh
case "$*" in *-target*) echo no such target >&2; exit 1 ;; esac
exec clang "$@"
', 0755);
my $no_probes = spew("$dir/cc-without-probes", '#!/bin/sh
case "$*" in *-fstack-clash-protection*) echo no such option >&2; exit 1 ;; esac
exec ' . $cc . ' "$@"
', 0755);
my $no_gold = spew("$dir/cc-without-gold", '#!/bin/sh
case "$*" in *-fuse-ld=gold*) echo no such linker >&2; exit 1 ;; esac
exec ' . $cc . ' "$@"
', 0755);
my $no_static = spew("$dir/cc-without-nostdlib", '#!/bin/sh
case "$*" in *-nostdlib*) echo no such option >&2; exit 1 ;; esac
exec ' . $cc . ' "$@"
', 0755);
# Its headers have what the stable ABI of Python 3.10 has, and so no buffers.
mkdir "$dir/include";
spew("$dir/include/Python.h", '#undef Py_LIMITED_API
#define Py_LIMITED_API 0x030a0000
#include_next <Python.h>
');
my $no_buffers = spew("$dir/python-without-buffers", '#!/bin/sh
echo "-I' . "$dir/include" . ' $(python3 "$@")"
', 0755);

# without_iterators COMPILER: one that knows no iterators of OpenMP's depend
sub without_iterators
{
	my ($compiler) = @_;

	return spew("$dir/" . ($compiler =~ s{.*[/ ]}{}r) . '-without-iterators',
		'#!/bin/sh
for word; do
	case $word in
	*.c) ! grep -q iterator "$word" || { echo no iterators >&2; exit 1; } ;;
	esac
done
exec ' . $compiler . ' "$@"
', 0755);
}

# "yes" or "no"; only this feature is asked for, since asking for all takes long.
sub answer
{
	my ($feature, $tools, @arguments) = @_;
	my $others = join ' ', grep { $_ ne $feature } @features;
	my (undef, $said) = capture("$make -s B=$dir/" . $number++
		. " WITHOUT='$others' CC=$tools/cc CXX=$tools/g++ "
		. "TASKS_CLANG=$tools/clang BPF_CLANG=$tools/clang @arguments "
		. 'features');

	return $said =~ /^\Q$feature\E\s+(yes|no)$/m ? $1 : $said;
}

# Each feature with what may be missing: a PATH of compilers_without(), or
# VARIABLE=VALUE for make.
my %missing = (
	cc => ['CC=no-such-compiler', 'errno.h', 'linux/futex.h',
	       'lib/libc.so'],
	stackprobes => ['CC=no-such-compiler', "CC=$no_probes"],
	gold => ['CC=no-such-compiler', "CC=$no_gold"],
	launcher => ['CC=no-such-compiler', "CC=$no_static"],
	hwloc => ['hwloc.h', 'lib/libhwloc.so'],
	jansson => ['jansson.h', 'lib/libjansson.so'],
	xxhash => ['xxhash.h', 'lib/libxxhash.so'],
	cmocka => ['cmocka.h', 'lib/libcmocka.so'],
	sdt => ['sys/sdt.h'],
	ebpf => ['BPF_CLANG=no-such-compiler', "BPF_CLANG=$no_target",
		 "BPFTOOL=$dir/no-such-tool", "BPFTOOL=$false",
		 'bpf/bpf_helpers.h', 'bpf/bpf.h', 'lib/libbpf.so'],
	mpi => ['MPICC=no-such-compiler', "MPICC=$only_showme", 'mpi.h',
		'lib/libmpi.so'],
	cxx => ['CXX=no-such-compiler', 'string', 'lib/libstdc++.so'],
	openmp => ['omp.h', 'lib/libgomp.so', 'CC=' . without_iterators($cc)],
	libomp => ['TASKS_CLANG=no-such-compiler', 'omp.h', 'lib/libomp.so',
		   'TASKS_CLANG=' . without_iterators('clang')],
	tbb => ['CXX=no-such-compiler', 'oneapi/tbb/task_arena.h',
		'lib/libtbb.so'],
	python => ['PYTHON=no-such-command', "PYTHON=$false", "PYTHON=$no_buffers",
		   'Python.h'],
	taskflow => ['taskflow/taskflow.hpp'],
);
is_deeply([sort keys %missing], [sort @features], 'each feature is missed once');

my $complete = compilers_without("$dir/complete");

for my $feature (@features) {
	SKIP: {
		skip "no $feature here", 1
			if answer($feature, $complete) ne 'yes';
		pass("$feature is found");
		for my $missing (@{ $missing{$feature} }) {
			my $is_variable = $missing =~ /=/;
			my $tools = $is_variable ? $complete :
				compilers_without("$dir/tools" . $number,
						  $missing);

			is(answer($feature, $tools,
				  $is_variable ? $missing : ()), 'no',
			   "$feature is not found without "
			   . $missing =~ s{\Q$dir\E/}{}r);
		}
	}
}

# Asked again when a tool has changed, and not otherwise.
my $again = "$make -s B=$dir/again WITHOUT='@features[0 .. 5]' MPICC=$dir/mpicc";
capture("$again features");
my $key = (stat "$dir/again/features/key")[9] - 100;
utime($key, $key, "$dir/again/features/key");
capture("$again features");
is((stat "$dir/again/features/key")[9], $key, 'nothing has changed: not asked');
spew("$dir/mpicc", "#!/bin/sh\nexit 1\n", 0755);
capture("$again features");
isnt((stat "$dir/again/features/key")[9], $key, 'a tool has: asked again');

# A compiler that ends only when the asking is interrupted.
my $endless = spew("$dir/endless", "#!/bin/sh\n: >$dir/begun\n"
	. "while [ -e $dir/begun ]; do sleep 0.1; done\n", 0755);

# interrupted SIGNAL: how many directories that leaves, and the status
sub interrupted
{
	my ($signal) = @_;
	my $pid = fork // die "fork: $!";

	if (!$pid) {
		$SIG{$_} = 'DEFAULT' for qw(HUP INT TERM);
		# As make gives them.
		$ENV{$_} //= '' for qw(CXX MPICC BPF_CLANG BPFTOOL OMP_CLANG
			PYTHON TASKFLOW FLAGS CXX_FLAGS LDFLAGS);
		@ENV{qw(CC WITHOUT)} = ($endless, "@features[1 .. $#features]");
		exec "$top/scripts/features", "$dir/interrupted";
	}
	for (1 .. 600) {
		last if -e "$dir/begun";
		select undef, undef, undef, 0.1;
	}
	kill $signal, $pid;
	waitpid $pid, 0;
	my $status = $?;
	my @left = glob "$dir/interrupted/work.*";
	unlink "$dir/begun";
	return (scalar @left, $status >> 8);
}

is_deeply([interrupted('INT')], [0, 130], 'an interrupt leaves no directory');
is_deeply([interrupted('TERM')], [0, 143], 'nor does an end');

done_testing();
