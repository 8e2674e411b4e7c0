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
	'common/size.h' => "$dual\n",
	'ktask/include/ktask/ktask.h' => "$dual\n#include <stddef.h>\n",
	'ktask/core/split.h' => "$dual\n",
	'ktask/core/split.c' => "$dual\n#include <ktask/ktask.h>\n"
		. "#include \"core/split.h\"\n#include \"ktask_port.h\"\n",
	'ktask/util/cpus.h' => "$dual\n",
	'ktask/user/run.c' => "$dual\n#include <unistd.h>\n"
		. "#include \"core/split.h\"\n#include \"common/size.h\"\n",
	'ktask/user/pool/pool.h' => "$dual\n#include \"util/cpus.h\"\n",
	'ktask/user/pool/pool.c' => "$dual\n#include \"pool.h\"\n",
	'ktask/ops/op.h' => "$dual\n",
	'ktask/ops/op.c' => "$dual\n#include <errno.h>\n#include <ktask/ktask.h>\n"
		. "#include \"op.h\"\n#include \"user/pool/pool.h\"\n",
	'ktask/cli/ui/bar.h' => "$dual\n#include \"util/cpus.h\"\n",
	'ktask/cli/cmd/cmd.c' => "$dual\n#include \"cli/ui/bar.h\"\n",
	'ktask/tests/unit/a.c' => "$dual\n#include \"core/split.h\"\n",
	'umt/include/umt.h' => "$dual\n",
	'umt/lib/soft.c' => "$dual\n#include <ktask/ktask.h>\n#include <umt.h>\n"
		. "#include \"common/size.h\"\n",
	'Makefile' => "# SPDX-License-Identifier: GPL-2.0-only OR MIT\n",
	'ktask/man/a.1' => ".\\\" SPDX-License-Identifier: GPL-2.0-only OR MIT\n",
	'ktask/man/b.1' => ".so man1/a.1\n",
	'doc/a.md' => "See /usr/share and \$HOME/work/, build/work/x.\n",
	'build/junk.c' => "no licence here \n",
);
passes('', 'a clean tree', %clean);

SKIP: {
	skip 'no clang-format', 3 unless have('clang-format');
	catches('format', 'spaces for tabs', 'ktask/user/a.c:3:',
		'ktask/user/a.c' => "$dual\nint a(void)\n{\n    return 0;\n}\n");
	passes('format', 'tabs',
	       'ktask/user/a.c' => "$dual\nint a(void)\n{\n\treturn 0;\n}\n");
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

# What may be included, and a breach of each wall between those.
my %headers = map { $_ => "$dual\n" } qw(common/size.h
	ktask/include/ktask/ktask.h ktask/util/cpus.h ktask/core/split.h
	ktask/engine/context.h ktask/user/pool/pool.h ktask/kernel/compat.h
	ktask/sim/fiber.h ktask/ops/op.h ktask/preload/shim.h ktask/cli/cmd/cmd.h
	umt/include/umt.h umt/util/monotonic_clock.h umt/ebpf/shared.h umt/lib/broker.h
	umt/cmd/thread_names.h umt/umtd/held_maps.h ktrt/include/ktask/runtime.h
	ktrt/runtime/rt.h ktrt/apps/heat/heat.h);

sub catches_include
{
	my ($path, $line, $what) = @_;

	catches('includes', $what, "$path:2:", %headers,
		$path => "$dual\n$line\n");
}

sub passes_include
{
	my ($path, $line, $what) = @_;

	passes('includes', $what, %headers, $path => "$dual\n$line\n");
}

# Each layer of ktask, by a header of it, from the lowest to the highest.
my @walls = (
	['util' => 'util/cpus.h'], ['core' => 'core/split.h'],
	['engine' => 'engine/context.h'], ['user' => 'user/pool/pool.h'],
	['ops' => 'ops/op.h'], ['cli' => 'cli/cmd/cmd.h'],
);
for my $low (0 .. $#walls) {
	my $directory = $walls[$low][0];

	catches_include("ktask/$directory/a.c", "#include \"$walls[$_][1]\"",
			"$walls[$_][0] in $directory, which is below it")
		for $low + 1 .. $#walls;
}
passes_include('ktask/user/a.c', "#include \"$_\"", "$_ in user")
	for qw(util/cpus.h core/split.h engine/context.h common/size.h);
passes_include('ktask/cli/a.c', "#include \"$_\"", "$_ in cli")
	for qw(util/cpus.h user/pool/pool.h ops/op.h);
catches_include("ktask/$_->[0]/a.c", "#include \"$_->[1]\"",
		"$_->[1] in $_->[0], which is beside it")
	for ['user', 'kernel/compat.h'], ['user', 'sim/fiber.h'],
	    ['kernel', 'user/pool/pool.h'], ['sim', 'kernel/compat.h'],
	    ['cli', 'preload/shim.h'], ['preload', 'cli/cmd/cmd.h'];
catches_include("ktask/$_/a.c", '#include "util/cpus.h"',
		"what needs a C library, in $_") for qw(core engine kernel);
for my $directory (qw(ops preload cli)) {
	catches_include("ktask/$directory/a.c", '#include "core/split.h"',
			"what the host hides, in $directory");
	catches_include("ktask/$directory/a.c", '#include <engine/context.h>',
			"the same by <>, in $directory");
	catches_include("ktask/$directory/a.c", '#include "ktask_port.h"',
			"the port in $directory");
}
catches_include('ktask/core/a.c', '#include <stdio.h>', 'the system in core');
catches_include('ktask/engine/a.h', '#include <errno.h>', 'the system in engine');
catches_include('ktask/core/a.c', '# include "errno.h"', 'any other file in core');
catches_include('ktask/cli/cmd/a.c', '#include "../../user/pool/pool.h"',
		'a way around');
catches_include('ktask/include/ktask/a.h', '#include "core/split.h"',
		'core in include');
catches_include("$_/a.c", '#include "core/split.h"', "core of ktask in $_")
	for qw(umt/lib ktrt/runtime ktask/examples ktrt/apps/heat);
catches_include('umt/lib/a.c', '#include "ktask/core/split.h"',
		'the same by its whole path');
catches_include('umt/lib/a.c', '#include <ktask/runtime.h>', 'ktrt in umt');
catches_include('ktask/user/a.c', '#include <umt.h>', 'umt in ktask');
catches_include('ktrt/runtime/a.c', '#include "lib/broker.h"',
		'the inside of umt in ktrt');
catches_include('umt/ebpf/a.h', '#include "lib/broker.h"', 'libumt in eBPF');
catches_include('umt/lib/a.c', '#include "umtd/held_maps.h"', 'umtd in libumt');
catches_include('umt/umtd/a.c', '#include "cmd/thread_names.h"', 'the command in umtd');
catches_include('ktask/bench/a.c', '#include "user/pool/pool.h"', 'user in bench');
catches_include('ktrt/apps/heat/a.c', '#include "runtime/rt.h"',
		'the inside of ktrt in its applications');
passes_include('ktrt/runtime/a.c', "#include $_", "$_ in ktrt")
	for qw(<ktask/ktask.h> <umt.h> <ktask/runtime.h> "common/size.h");
passes_include('ktask/tests/api/a.c', '#include "core/split.h"', 'core in a test');

catches('cycles', 'two headers that include one another', 'ktask/core/a.h -> ',
	'ktask/core/a.h' => "$dual\n#include \"core/b.h\"\n",
	'ktask/core/b.h' => "$dual\n#include \"a.h\"\n");
catches('cycles', 'a way of three, by <> too', 'umt/include/a.h -> ',
	'umt/include/a.h' => "$dual\n#include <b.h>\n",
	'umt/include/b.h' => "$dual\n#include <c.h>\n",
	'umt/include/c.h' => "$dual\n#include <a.h>\n");
passes('cycles', 'two ways to one header',
       'ktask/core/a.h' => "$dual\n#include \"core/b.h\"\n#include \"core/c.h\"\n",
       'ktask/core/b.h' => "$dual\n#include \"core/c.h\"\n",
       'ktask/core/c.h' => "$dual\n");

my @module = map { ("ktask/$_.c" => "$dual\n") } qw(core/a engine/b kernel/client/c);
my $kbuild = "# kernel/d.o\nktask-y += core/a.o\nktask-y += engine/b.o\n";
my $last = "ktask-y += kernel/client/c.o\n";

passes('kbuild', 'a list of all sources', @module,
       'ktask/sim/d.c' => "$dual\n", 'ktask/Kbuild' => "$kbuild$last");
catches('kbuild', 'a source that is not listed',
	'ktask/Kbuild: ktask/kernel/client/c.c is not',
	@module, 'ktask/Kbuild' => $kbuild);
catches('kbuild', 'an object without a source',
	'ktask/Kbuild:5: there is no kernel/d.c',
	@module, 'ktask/Kbuild' => "$kbuild${last}ktask-y += kernel/d.o\n");
catches('kbuild', 'an object that is listed twice', 'ktask/Kbuild:4: core/a.o',
	@module, 'ktask/Kbuild' => "${kbuild}ktask-y += core/a.o\n$last");
catches('kbuild', 'a pattern', 'ktask/Kbuild:4: lists by', @module,
	'ktask/Kbuild' => "${kbuild}ktask-y += \$(wildcard kernel/*.c)\n");
my $other = "obj-m := a.o\na-y := b.o\n";
passes('kbuild', 'another module\'s list', 'tests/vm/b.c' => "$dual\n",
       'tests/vm/Kbuild' => $other);
catches('kbuild', 'a source of another module that is not listed',
	'tests/vm/Kbuild: tests/vm/c.c is not', 'tests/vm/c.c' => "$dual\n",
	'tests/vm/Kbuild' => $other);
catches('kbuild', 'a pattern of another module', 'tests/vm/Kbuild:3: lists by',
	'tests/vm/Kbuild' => "$other\$(wildcard *.c)\n");

for my $path ('ktask/user/a.c', 'ktask/include/ktask/a.h', 'mk/a.mk', 'Makefile',
	      'umt/man/a.1', 'ktask/tests/cli/a.bats') {
	catches('licence', "$path without one", "$path:1:",
		$path => "int a;\n\n\n$dual\n");
}
catches('licence', 'a script without one', 'scripts/a:1:',
	'scripts/a' => "#!/bin/sh\necho\n");
catches('licence', 'another one than its directory has', 'ktask/ops/a.c:1: must be',
	'ktask/ops/a.c' => "/* SPDX-License-Identifier: GPL-2.0-only */\n");
passes('licence', 'plain GPL in the kernel host',
       'ktask/kernel/a.c' => "/* SPDX-License-Identifier: GPL-2.0-only */\n");

my $long = "int x;\n" x 600;
catches('locking', 'a lock without a legend', 'ktask/user/a.c: no word',
	'ktask/user/a.c' => "$dual\nstatic pthread_mutex_t own_lock;\n");
catches('locking', 'an atomic field without one', 'ktask/user/a.h: no word',
	'ktask/user/a.h' => "$dual\nstruct a {\n\t_Atomic int state;\n};\n");
catches('locking', 'a write to what others read', 'ktask/core/a.c: no word',
	'ktask/core/a.c' => "$dual\nvoid f(void)\n{\n\tkt_store(&job->x, 1);\n}\n");
passes('locking', 'the same where the legend of a header is named',
       'ktask/core/a.c' => "$dual\n/*\n * Locking: core/job.h.\n */\n"
	. "void f(void)\n{\n\tkt_store(&job->x, 1);\n}\n");
passes('locking', 'one legend for a source and its header',
       'ktask/user/a.h' => "$dual\n/*\n * Locking:\n *\tL: a_lock\n */\n",
       'ktask/user/a.c' => "$dual\nstatic pthread_mutex_t own_lock;\n");
passes('locking', 'what is passed to a function, and statics inside one',
       'ktask/user/a.h' => "$dual\nvoid take(pthread_mutex_t *lock);\n"
	. "\tstatic _Atomic int known;\n");
catches('length', 'a long file', 'ktask/user/a.c: 601 lines',
	'ktask/user/a.c' => "$dual\n$long");
passes('length', 'a long file with a reason',
       'ktask/user/a.c' => "$dual\n/* length: one table */\n$long");
passes('length', '600 lines', 'ktask/user/a.c' => $long);

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

catches('names', 'one name in two directories',
	'ktask/ops/split.c: there is ktask/core/split.c',
	'ktask/core/split.c' => "$dual\n", 'ktask/ops/split.c' => "$dual\n");
catches('names', 'one name in two products', 'umt/lib/split.h:',
	'ktask/core/split.h' => "$dual\n", 'umt/lib/split.h' => "$dual\n");
passes('names', 'one name in hosts and in programs of their own',
       map { ("$_/job.c" => "$dual\n") } qw(ktask/core ktask/user ktask/kernel
	ktask/sim ktask/tests/unit umt/bench ktrt/apps/a tests/vm));

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
	'a variable with its type, in one line' =>
		"static enum { FIRST, SECOND } NAME;\n",
	'the first variable of two' => "static int NAME, b_c;\n",
	'the second variable of two with values' =>
		"static const struct a b_c = { 1, 2 }, NAME[] = { { 3 }, { 4 } };\n",
	'a variable of a thread' => "static __thread int NAME;\n",
	'a lock of the kernel' => "static DEFINE_SPINLOCK(NAME);\n",
	'a bitmap of the kernel' => "static DECLARE_BITMAP(NAME, 256);\n",
	'a list of the kernel' => "static LIST_HEAD(NAME);\n",
);
for my $kind (sort keys %statics) {
	my $text = "$dual\n$statics{$kind}";

	catches('statics', "$kind of one word", 'ktask/core/a.c:2:',
		'ktask/core/a.c' => $text =~ s/NAME/look/r);
	passes('statics', "$kind of two words",
	       'ktask/core/a.c' => $text =~ s/NAME/take_permit/r);
}
catches('statics', 'one behind a comment', 'ktask/util/a.h:4:',
	'ktask/util/a.h' => "$dual\n/* \"\n */\nstatic inline int go(void)\n{\n}\n");
catches('statics', 'one of the kernel host', 'ktask/kernel/a.c:2:',
	'ktask/kernel/a.c' => "// SPDX-License-Identifier: GPL-2.0-only\n"
	. "static void tend(struct work_struct *work)\n{\n}\n");
passes('statics', 'what is no static of a file',
       'ktask/user/a.c' => "$dual\n/*\nstatic int a;\n*/\nint go(void)\n{\n"
	. "\tstatic int i;\n\n\treturn i;\n}\n");
catches('statics', "one of $_", "$_/a.c:2:",
	"$_/a.c" => "$dual\n$statics{'a variable'}" =~ s/NAME/seen/r)
	for qw(ktask/ops ktask/preload ktask/cli umt/lib umt/ebpf umt/cmd umt/umtd
	       ktrt/runtime ktrt/cmd ktrt/apps);
catches('statics', "one of $_", "$_/a.c:2:",
	"$_/a.c" => "$dual\n$statics{'a function'}" =~ s/NAME/go/r)
	for qw(tests/support ktask/tests/sim/support umt/tests/support);
catches('statics', "a function of one word of $_", "$_/a.c:2:",
	"$_/a.c" => "$dual\n$statics{'a function'}" =~ s/NAME/go/r)
	for qw(ktask/examples ktrt/examples ktask/bench/common tests/vm tests/vm/series
	       ktask/tests/unit ktask/tests/preload umt/tests ktrt/tests/runtime
	       tests/vm/module tests/vm/user tests/runner ktask/bench ktask/bench/vm
	       umt/bench ktrt/bench/tasks);
catches('statics', 'a function of one word in C++', 'ktrt/examples/a.cpp:2:',
	'ktrt/examples/a.cpp' => "$dual\n$statics{'a function'}" =~ s/NAME/go/r);
catches('statics', 'a test whose name is one word', 'umt/tests/a.c:2:',
	'umt/tests/a.c' => "$dual\nstatic void limits(void **state)\n{\n}\n");
passes('statics', "data of one word of $_", "$_/a.c" =>
	"$dual\n$statics{'a variable'}" =~ s/NAME/seen/r)
	for qw(tests/vm/series ktask/tests/unit ktask/bench);
passes('statics', 'an attribute of data', 'ktask/bench/a.c' =>
	"$dual\nstatic char page[4096] __attribute__((aligned(4096)));\n");
catches('statics', 'data of one word with an attribute', 'ktask/core/a.c:2:',
	'ktask/core/a.c' => "$dual\nstatic char page[8] __attribute__((aligned(8)));\n");

catches('whitespace', 'a space at the end', 'doc/a.md:2:',
	'doc/a.md' => "a\nb \n");
catches('whitespace', 'a carriage return', 'doc/a.md:1:',
	'doc/a.md' => "a\r\n");
catches('whitespace', 'an unfinished line', 'doc/a.md: no newline',
	'doc/a.md' => "a\nb");

# Every word of the issue that a program can tell, in a name of each product.
for my $word (qw(seat offer withdraw demand spare depth glimpse calm odd crowd look sight
	stands remember learn learnt shelf bell room go dear choicest folder trifle
	place)) {
	catches('words', "'$word' in a name", 'ktrt/runtime/a.c:2:',
		'ktrt/runtime/a.c' => "$dual\nint nr_${word}_bytes;\n");
}
catches('words', 'several of a thing', 'ktask/cli/a.c:2:',
	'ktask/cli/a.c' => "$dual\nint free_places;\n");
catches('words', 'a word in capitals', 'umt/lib/a.h:2:',
	'umt/lib/a.h' => "$dual\n#define LOOK_MS 5\n");
catches('words', 'permits called slots', 'ktask/user/a.c:2:',
	'ktask/user/a.c' => "$dual\nint free_slots;\n");
catches('words', 'slots in a comment of the engine', 'ktask/engine/a.c:2:',
	'ktask/engine/a.c' => "$dual\n/* All slots are taken. */\n");
catches('words', 'one in a comment', 'ktask/core/a.h:2:',
	'ktask/core/a.h' => "$dual\n/* Spare helpers. */\n");
catches('words', 'one in a message', 'ktask/cli/a.c:2:',
	'ktask/cli/a.c' => "$dual\nconst char b[] = \"of the folder\";\n");
catches('words', 'one in a script', 'tests/vm/a:2:',
	'tests/vm/a' => "#!/bin/sh\nmkdir \"\$FOLDER\"\n");
catches('words', 'one in a page', 'doc/a.md:1:',
	'doc/a.md' => "Two folders.\n");
passes('words', 'one in the notebook', 'bench/notebook/a.md' => "Two folders.\n");
catches('words', 'one behind a message', 'ktask/cli/a.c:2:',
	'ktask/cli/a.c' => "$dual\nconst char *b = \"b\", *room;\n");
catches('words', 'a file that is named so', 'ktrt/runtime/room.c:',
	'ktrt/runtime/room.c' => "$dual\n");
catches('words', 'one in a test', 'ktask/tests/unit/a.c:2:',
	'ktask/tests/unit/a.c' => "$dual\nint nr_places;\n");
catches('words', 'one in what tests share', 'tests/support/a.h:2:',
	'tests/support/a.h' => "$dual\nvoid go(void);\n");
catches('words', 'one in a benchmark', 'umt/bench/a.c:2:',
	'umt/bench/a.c' => "$dual\ndouble *room;\n");
catches('words', 'a test that is named so', 'ktrt/tests/runtime/spare-threads-idle.c:',
	'ktrt/tests/runtime/spare-threads-idle.c' => "$dual\n");
passes('words', 'a plain verb in the claim of a test',
       'umt/tests/threads-come-and-go.c' => "$dual\n");
passes('words', 'a name of the C library',
       'tests/support/a.h' => "$dual\n#define HOW FTW_DEPTH\n");
catches('words', 'a file whose name says nothing', 'umt/umtd/held.h:',
	'umt/umtd/held.h' => "$dual\n");
passes('words', 'a name that programs rely on', 'ktask/user/a.c' =>
       "$dual\nconst char b[] = \"ktask-slots-1\";\n");
passes('words', 'words that contain one',
       'ktask/user/a.c' => "$dual\nint oversight, placement, doorbell, algorithm;\n");
passes('words', 'the choice of CPUs', 'ktask/user/a.c' =>
       "$dual\nbool helper_place(int a);\nint manager_place_helper(int b);\n");
passes('words', 'words of the field', 'ktask/preload/a.c' =>
       "$dual\n#define ACCESS_ON_DEMAND 1\nint look_up_name(int a);\n/* queue depth */\n");
passes('words', 'plain English in prose', 'ktrt/runtime/a.c' =>
       "$dual\n/* There is room for it: look there,\n * in place of one that stands. */\n");
passes('words', 'the slots of an array', 'ktrt/runtime/a.c' => "$dual\nint slot;\n");

my ($status) = capture("$top/scripts/style nonsense");
isnt($status, 0, 'a rule that is not there is refused');

done_testing();
