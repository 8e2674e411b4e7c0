#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Installs into a directory of its own, builds every example there through
# pkg-config alone, runs one and the command, and takes it all away again.

use strict;
use warnings;
use Cwd qw(realpath);
use File::Find;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $root = scratch();
my $lib = "$root/opt/kt/lib";
my $make = "make -s -C $top B=$build DESTDIR=$root PREFIX=/opt/kt";

sub runs
{
	my ($what, $command) = @_;
	my ($status, $said) = capture($command);

	is($status, 0, $what) or diag($said);
	return $said;
}

sub installed
{
	my @found;

	find({ no_chdir => 1, wanted => sub {
		push @found, s{^\Q$root\E/}{}r if -f || -l;
	} }, $root);
	return sort @found;
}

runs('make install', "$make install");
my %is = map { $_ => 1 } installed();
my $soname = (glob "$lib/libktask.so.?")[0] // '';
$soname =~ s{.*/}{};
for my $file (qw(bin/ktask include/ktask/ktask.h include/ktask/ops.h
		 lib/libktask.a lib/libktask.so
		 bin/umt include/umt.h lib/libumt.a lib/libumt.so lib/pkgconfig/umt.pc
		 bin/ktrt-info include/ktask/runtime.h include/ktask/runtime.hpp
		 lib/libktrt.a lib/libktrt.so lib/pkgconfig/ktrt.pc
		 lib/pkgconfig/ktask.pc lib/ktask/ktask-commands lib/ktask/libktask-preload.so),
	      "lib/$soname") {
	ok($is{"opt/kt/$file"}, "$file is there");
}
is_deeply([grep { !m{^opt/kt/} } keys %is], [],
	  'nothing is put outside the prefix');
for my $page (map { s{.*/}{}r } glob "$top/*/man/*.[1-8]") {
	my ($section) = $page =~ /(\d)$/;
	ok($is{"opt/kt/share/man/man$section/$page"}, "page $page is there");
}
ok($is{"opt/kt/lib/udev/rules.d/60-ktask.rules"} &&
   $is{'opt/kt/lib/sysusers.d/ktask.conf'}, 'the device is for a group');
ok($is{"opt/kt/share/bash-completion/completions/$_"},
   "the completion of $_ is where bash looks") for qw(ktask umt);
like(slurp("$root/opt/kt/lib/systemd/system/ktaskd.service"),
     qr{^ExecStart=/opt/kt/sbin/ktaskd \$KTASKD_OPTIONS$}m, 'systemd finds ktaskd');
SKIP: {
	skip 'built without eBPF', 2 if !-e "$build/umtd";
	ok($is{"opt/kt/sbin/umtd"}, 'umtd is there');
	like(slurp("$root/opt/kt/lib/systemd/system/umtd.service"),
	     qr{^ExecStart=/opt/kt/sbin/umtd$}m, 'and systemd finds it');
}
is((stat "$lib/libktask.a")[2] & 0777, 0644, 'data is not executable');
is(realpath("$lib/libktask.so"), realpath("$lib/$soname"),
   'both links lead to one file');

unlike(slurp("$lib/pkgconfig/$_.pc"), qr/\@|\Q$build\E|\Q$root\E/,
       "$_.pc knows nothing of the build") for qw(ktask umt ktrt);
$ENV{PKG_CONFIG_PATH} = "$lib/pkgconfig";
$ENV{PKG_CONFIG_LIBDIR} = "$lib/pkgconfig";
$ENV{PKG_CONFIG_SYSROOT_DIR} = $root;

SKIP: {
	skip 'no pkg-config', 1 unless have('pkg-config');
	is((capture('pkg-config --modversion ktask'))[1],
	   (capture("$top/scripts/version"))[1], 'ktask.pc has the version');

	spew("$root/program.c", <<'C');
#include <ktask/ops.h>
#include <stdio.h>
int main(void)
{
	static char memory[1 << 20];

	printf("%s %d\n", ktask_version(),
	       ktask_fill(memory, sizeof(memory), "x", 1, 0));
	return memory[sizeof(memory) - 1] != 'x';
}
C
	my $compile = "$cc -o $root/program $root/program.c";
	runs('a program links with the shared library',
	     "$compile \$(pkg-config --cflags --libs ktask)");
	like(runs('and runs', "LD_LIBRARY_PATH=$lib $root/program"),
	     qr/^\d+\.\d+\.\d+ 0$/, 'and says the version');
	runs('a program links with the static library', "$compile -static "
	     . '$(pkg-config --static --cflags --libs ktask)');
	runs('and runs alone', "$root/program");
	runs('C++ too', "$cxx -x c++ -o $root/program $root/program.c "
	     . '$(pkg-config --cflags --libs ktask)');

	spew("$root/umt.c", <<'C');
#include <umt.h>
int main(void)
{
	struct umt *user;

	if (umt_open(&user, NULL) || umt_thread_add(user))
		return 1;
	umt_close(user);
	return 0;
}
C
	$compile = "$cc -o $root/program $root/umt.c";
	runs('a program links with libumt',
	     "$compile \$(pkg-config --cflags --libs umt)");
	runs('and runs', "LD_LIBRARY_PATH=$lib $root/program");
	runs('a program links with the static libumt', "$compile "
	     . "-Wl,-Bstatic \$(pkg-config --static --cflags --libs umt) "
	     . '-Wl,-Bdynamic');
	runs('and runs alone', "$root/program");

	for my $example (glob "$top/ktrt/examples/*.c*") {
		my $name = $example =~ s{.*/}{}r;
		my $compiler = $example =~ /pp$/ ? $cxx : $cc;
		runs("example $name compiles", "$compiler -o $root/program "
		     . "$example \$(pkg-config --cflags --libs ktrt) "
		     . "-Wl,-rpath-link,$lib");
		runs('and runs', "LD_LIBRARY_PATH=$lib $root/program");
	}
	runs('a program links with the static runtime', "$cc -o $root/program "
	     . "$top/ktrt/examples/events.c -Wl,-Bstatic "
	     . '$(pkg-config --static --cflags --libs ktrt) -Wl,-Bdynamic');
	runs('and runs alone', "$root/program");

	for my $example (glob "$top/ktask/examples/*.c") {
		my $name = $example =~ s{.*/}{}r;
		runs("example $name compiles", "$cc -Wall -Wextra -Werror "
		     . "-Wno-unused-parameter -o $root/example $example "
		     . '$(pkg-config --cflags --libs ktask)');
	}
	unlink glob "$root/*";
}

like(runs('the command runs', "$root/opt/kt/bin/ktask --version"),
     qr/\d+\.\d+\.\d+/, 'and says its version');
runs('umt runs alone', "$root/opt/kt/bin/umt info");
runs('it finds its shim', "$root/opt/kt/bin/ktask run -- true");

runs('make uninstall', "$make uninstall");
is_deeply([installed()], [], 'nothing is left');
ok(!-e "$root/opt/kt/include/ktask", 'nor our directories');

# Distributions choose their own directory for libraries.
runs('make install with LIBDIR', "$make install LIBDIR=/opt/kt/lib/triplet");
ok(-e "$lib/triplet/ktask/libktask-preload.so", 'puts the libraries there');
like(slurp("$lib/triplet/pkgconfig/ktask.pc"), qr{^libdir=/opt/kt/lib/triplet$}m,
     'and ktask.pc says so');
runs('make uninstall with LIBDIR',
     "$make uninstall LIBDIR=/opt/kt/lib/triplet");
is_deeply([installed()], [], 'takes it away again');

done_testing();
