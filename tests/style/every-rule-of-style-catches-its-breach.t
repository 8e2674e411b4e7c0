#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Builds small trees that break one rule of scripts/style each, and a tree
# that breaks none.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dual = '/* SPDX-License-Identifier: GPL-2.0-only OR MIT */';
my $number = 0;

# A tree of the given files; SPDX lines are added to C files by hand.
sub tree
{
	my (%files) = @_;
	our $dir //= scratch();
	my $root = "$dir/" . ++$number;

	spew("$root/.clang-format", slurp("$top/.clang-format"));
	spew("$root/$_", $files{$_}) for keys %files;
	return $root;
}

sub passes
{
	my ($rule, $what, %files) = @_;
	my ($status, $said) =
		capture("$top/scripts/style --root " . tree(%files) . " $rule");

	is($status, 0, "$rule allows $what") or diag($said);
}

sub catches
{
	my ($rule, $what, $where, %files) = @_;
	my ($status, $said) =
		capture("$top/scripts/style --root " . tree(%files) . " $rule");

	is($status, 1, "$rule catches $what");
	like($said, qr/^# \Q$where\E/m, "$rule says where") or diag($said);
}

my %clean = (
	'core/split.h' => "$dual\n",
	'core/split.c' => "$dual\n#include <ktask/ktask.h>\n"
		. "#include \"core/split.h\"\n#include \"ktask_port.h\"\n",
	'lib/run.c' => "$dual\n#include <unistd.h>\n#include \"core/split.h\"\n",
	'lib/pool.c' => "$dual\n#include \"lib/pool.h\"\n",
	'ops/op.h' => "$dual\n",
	'ops/op.c' => "$dual\n#include <errno.h>\n#include <ktask/ops.h>\n"
		. "#include \"op.h\"\n",
	'tests/unit/a.c' => "$dual\n#include \"core/split.h\"\n",
	'Makefile' => "# SPDX-License-Identifier: GPL-2.0-only OR MIT\n",
	'man/a.1' => ".\\\" SPDX-License-Identifier: GPL-2.0-only OR MIT\n",
	'man/b.1' => ".so man1/a.1\n",
	'doc/a.md' => "See /usr/share and \$HOME/work/, build/work/x.\n",
	'build/junk.c' => "no licence here \n",
);
passes('', 'a clean tree', %clean);

SKIP: {
	skip 'no clang-format', 3 unless have('clang-format');
	catches('format', 'spaces for tabs', 'lib/a.c:3:',
		'lib/a.c' => "$dual\nint a(void)\n{\n    return 0;\n}\n");
	passes('format', 'tabs',
	       'lib/a.c' => "$dual\nint a(void)\n{\n\treturn 0;\n}\n");
}

# A tree with one commit, dated far after the rule began.
sub with_commit
{
	my ($subject) = @_;
	my $root = tree('doc/a.md' => "text\n");
	my $date = '2099-01-01T00:00:00Z';
	my ($status, $said) = capture("cd $root && git init -q . && git add . && "
		. "GIT_COMMITTER_DATE=$date git -c user.name=a -c user.email=a\@b "
		. "commit -q --date=$date -m '$subject'");

	is($status, 0, "a commit is made: $subject") or diag($said);
	return capture("$top/scripts/style --root $root subjects");
}

SKIP: {
	skip 'no git', 8 unless have('git');
	my ($status) = with_commit('lib: add a call');
	is($status, 0, 'subjects allows a verb behind the area');
	for my $bad ('lib: a call is added', 'add a call',
		     'lib: add ' . 'a long subject ' x 6) {
		($status) = with_commit($bad);
		is($status, 1, "subjects catches '$bad'");
	}
}

{
	my $root = tree('scripts/results' => "#!/bin/sh\necho an old page\nexit 1\n");

	chmod 0755, "$root/scripts/results";
	my ($status, $said) = capture("$top/scripts/style --root $root results");
	is($status, 1, 'results catches a page that is not what the data say');
	like($said, qr/^# an old page/m, 'results says what is wrong');
}

sub catches_include
{
	my ($path, $line, $what) = @_;

	catches('includes', $what, "$path:2:", $path => "$dual\n$line\n",
		'ops/op.h' => "$dual\n");
}

catches_include('core/a.c', '#include <stdio.h>', 'the system in core');
catches_include('core/a.c', '#include "lib/pool.h"', 'lib in core');
catches_include('core/a.c', '# include "errno.h"', 'any other file in core');
catches_include('lib/a.c', '#include "ops/op.h"', 'ops in lib');
catches_include('ops/a.c', '#include "core/split.h"', 'core in ops');
catches_include('ops/a.c', '#include <core/split.h>', 'core in ops, by <>');
catches_include('ops/a.c', '#include "ktask_port.h"', 'the port in ops');
catches_include('preload/a.c', '#include "lib/pool.h"', 'lib in preload');
catches_include('cli/a.c', '#include "../lib/pool.h"', 'a way around');
catches_include('cli/a.c', '#include "ops/op.h"', 'ops in cli');
catches_include('examples/a.c', '#include "core/split.h"', 'core in examples');
catches_include('bench/a.c', '#include "lib/pool.h"', 'lib in bench');
catches_include('umt/a.c', '#include "kmod/compat.h"', 'kmod in umt');
catches_include('runtime/a.c', '#include "core/split.h"', 'core in runtime');
catches_include('include/ktask/a.h', '#include "core/a.h"', 'core in include');

my @module = map { ("$_.c" => "$dual\n") } qw(core/a engine/b kmod/c);
my $kbuild = "# kmod/d.o\nktask-y += core/a.o\nktask-y += engine/b.o\n";

passes('kbuild', 'a list of all sources', @module,
       'sim/d.c' => "$dual\n", 'Kbuild' => "${kbuild}ktask-y += kmod/c.o\n");
catches('kbuild', 'a source that is not listed', 'Kbuild: kmod/c.c is not',
	@module, 'Kbuild' => $kbuild);
catches('kbuild', 'an object without a source', 'Kbuild:5: there is no kmod/d.c',
	@module, 'Kbuild' => "${kbuild}ktask-y += kmod/c.o\nktask-y += kmod/d.o\n");
catches('kbuild', 'an object that is listed twice', 'Kbuild:4: core/a.o',
	@module, 'Kbuild' => "${kbuild}ktask-y += core/a.o\nktask-y += kmod/c.o\n");
catches('kbuild', 'a pattern', 'Kbuild:4: lists by',
	@module, 'Kbuild' => "${kbuild}ktask-y += \$(wildcard kmod/*.c)\n");
my $other = "obj-m := a.o\na-y := b.o\n";
passes('kbuild', 'another module\'s list', 'tests/vm/b.c' => "$dual\n",
       'tests/vm/Kbuild' => $other);
catches('kbuild', 'a source of another module that is not listed',
	'tests/vm/Kbuild: tests/vm/c.c is not', 'tests/vm/c.c' => "$dual\n",
	'tests/vm/Kbuild' => $other);
catches('kbuild', 'a pattern of another module', 'tests/vm/Kbuild:3: lists by',
	'tests/vm/Kbuild' => "$other\$(wildcard *.c)\n");

for my $path ('lib/a.c', 'include/ktask/a.h', 'mk/a.mk', 'Makefile',
	      'man/a.1', 'tests/cli/a.bats') {
	catches('licence', "$path without one", "$path:1:",
		$path => "int a;\n\n\n$dual\n");
}
catches('licence', 'a script without one', 'scripts/a:1:',
	'scripts/a' => "#!/bin/sh\necho\n");
catches('licence', 'another one than its folder has', 'ops/a.c:1: must be',
	'ops/a.c' => "/* SPDX-License-Identifier: GPL-2.0-only */\n");
passes('licence', 'plain GPL in kmod',
       'kmod/a.c' => "/* SPDX-License-Identifier: GPL-2.0-only */\n");

my $long = "int x;\n" x 600;
catches('length', 'a long file', 'lib/a.c: 601 lines',
	'lib/a.c' => "$dual\n$long");
passes('length', 'a long file with a reason',
       'lib/a.c' => "$dual\n/* length: one table */\n$long");
passes('length', '600 lines', 'lib/a.c' => $long);

# In two halves, for this file too is read by the rule.
catches('paths', 'a home', 'README.md:1:', 'README.md' => '/ho' . "me/me/x\n");
catches('paths', 'the super-user\'s home', 'README.md:2:',
	'README.md' => "\ncd /ro" . "ot/x\n");
passes('paths', 'what Cargo calls its index',
       'Cargo.lock' => "source = \"registry+crates" . ".io-index\"\n");
catches('paths', 'a registry', 'mk/a.mk:1:',
	'mk/a.mk' => 'http://deb.deb' . "ian.org/debian\n");
catches('paths', 'an address', 'mk/a.mk:1:', 'mk/a.mk' => "10.0" . ".0.1:80\n");

passes('executable', 'a module', 'tests/a.pm' => "1;\n");
catches('executable', 'a test that cannot be run', 'tests/a.t: cannot',
	'tests/a.t' => "#!/usr/bin/env perl\n");

passes('negation', 'one that has its effect',
	'tests/a.bats' => "\t! grep x y || false\n\tif ! x; then\n");
catches('negation', 'one that has none', 'tests/a.bats:1:',
	'tests/a.bats' => "\t! grep x y\n\ttrue\n");

catches('names', 'one name in two folders', 'ops/split.c: there is core/split.c',
	'core/split.c' => "$dual\n", 'ops/split.c' => "$dual\n");
catches('names', 'one name in a folder below', 'umt/lib/split.h:',
	'core/split.h' => "$dual\n", 'umt/lib/split.h' => "$dual\n");
passes('names', 'one name in hosts and in programs of their own',
       map { ("$_/job.c" => "$dual\n") } qw(core lib kmod sim tests/unit apps/a));

# A static of each kind, by one word and by two.
my %statics = (
	'a function' => "static int NAME(void)\n{\n\treturn 0;\n}\n",
	'a function that returns a pointer' =>
		"static struct a *NAME(int b)\n{\n}\n",
	'a function that is given one' =>
		"static int NAME(int a, int (*func)(int b), bool *c)\n{\n}\n",
	'a function with an attribute' =>
		"__attribute__((noinline)) static int\nNAME(int b)\n{\n}\n",
	'a variable' => "static unsigned NAME;\n",
	'a variable with a value' => "static const struct a NAME = { 1 };\n",
	'an array' => "static const char *const NAME[4] = { 0 };\n",
	'a pointer to a function' => "static void (*NAME)(int a);\n",
	'a variable with its type' =>
		"static struct {\n\tint a;\n\tint b[2];\n} NAME;\n",
	'a variable of a thread' => "static __thread int NAME;\n",
	'a lock of the kernel' => "static DEFINE_SPINLOCK(NAME);\n",
	'a bitmap of the kernel' => "static DECLARE_BITMAP(NAME, 256);\n",
	'a list of the kernel' => "static LIST_HEAD(NAME);\n",
);
for my $kind (sort keys %statics) {
	my $text = "$dual\n$statics{$kind}";

	catches('statics', "$kind of one word", 'core/a.c:2:',
		'core/a.c' => $text =~ s/NAME/look/r);
	passes('statics', "$kind of two words",
	       'core/a.c' => $text =~ s/NAME/take_permit/r);
}
catches('statics', 'one behind a comment', 'util/a.h:4:',
	'util/a.h' => "$dual\n/* \"\n */\nstatic inline int go(void)\n{\n}\n");
catches('statics', 'one of the kernel host', 'kmod/a.c:2:',
	'kmod/a.c' => "// SPDX-License-Identifier: GPL-2.0-only\n"
	. "static void tend(struct work_struct *work)\n{\n}\n");
passes('statics', 'what is no static of a file',
       'lib/a.c' => "$dual\n/*\nstatic int a;\n*/\nint go(void)\n{\n"
	. "\tstatic int i;\n\n\treturn i;\n}\n");
passes('statics', 'one word in a folder that is not checked',
       'ops/a.c' => "$dual\n$statics{'a function'}" =~ s/NAME/go/r);

catches('whitespace', 'a space at the end', 'doc/a.md:2:',
	'doc/a.md' => "a\nb \n");
catches('whitespace', 'a carriage return', 'doc/a.md:1:',
	'doc/a.md' => "a\r\n");
catches('whitespace', 'an unfinished line', 'doc/a.md: no newline',
	'doc/a.md' => "a\nb");

catches('words', 'a word that was given up', 'lib/a.c:2:',
	'lib/a.c' => "$dual\nint free_slots;\n");
catches('words', 'one in a comment', 'core/a.h:2:',
	'core/a.h' => "$dual\n/* Spare helpers. */\n");
passes('words', 'a name that programs rely on', 'lib/a.c' =>
       "$dual\nstruct ktask_slots_info a;\nconst char b[] = \"ktask-slots-1\";\n");
passes('words', 'words that contain one', 'lib/a.c' => "$dual\nint oversight;\n");
passes('words', 'them elsewhere', 'runtime/a.c' => "$dual\nint slot;\n");

my ($status) = capture("$top/scripts/style nonsense");
isnt($status, 0, 'a rule that is not there is refused');

done_testing();
