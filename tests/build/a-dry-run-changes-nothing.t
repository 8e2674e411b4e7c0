#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# `make -n GOAL`, of every goal that `make help` names, only prints.  make runs some lines
# of recipes all the same: those with a "+" or the word $(MAKE).  Here it has a shell that
# writes down what it is asked for, and runs only what starts another make or was asked
# while makefiles are read.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my $dir = scratch();
my $make = 'env -u MAKEFLAGS -u MFLAGS -u B TMPDIR=' . "$dir/tmp "
	. ($ENV{MAKE} || 'make') . " --no-print-directory -C $top B=$dir/build";
my @goals = map { /^## ([^:]+): /mg } map { slurp($_) } "$top/Makefile", glob "$top/mk/*.mk";
@goals = map { split /[, ]+/ } @goals;
mkdir "$dir/tmp";

# What make asks while it reads makefiles: none of it writes outside TMPDIR.
my $asked = join '|', map { "(?:$_)" } (
	q{find \S+ -name '\*\.d'}, q{grep -(?:LE|l) }, q{sed (?:-n )?'/\^[^']+'},
	'command -v \w+ 2>/dev/null$', 'git log -1 ', 'mktemp -d$',
	q{cp \S+build(?:/\w+)?/features/\* \S+/tmp/\S+ .*; .* scripts/features \S+/tmp/\S+$},
	'rm -rf \S+/tmp/\S+$');
# Each command of a line of a recipe.
my $makes = join '|', map { "(?:^(?:$_)\$)" } ('(?:do +)?(?:\S*/)?make(?: [^<>|&`]*)?',
	'status=[01]', 'exit(?: \$?\w+)?', ':', 'for \w+ in [\w -]+', 'done', '');

# It is started 2,000 times, and strictness would take half of that time.
my $shell = spew("$dir/shell", <<"END", 0755);
#!$^X
my \$command = pop;
my \@commands = map { s/^\\s+|\\s+\$//gr }
	split /;|\\|\\||&&|\\n/, \$command =~ s/\\\\\\n\\s*/ /gr;
my \$harmless = \$command =~ m{^\\s*(?:CC=.* )?(?:$asked)}
	|| !grep { !m{$makes} } \@commands;
open(my \$log, '>>', '$dir/log') or die;
print \$log \$harmless ? 'ran' : 'refused', ": \$command\\n";
close(\$log);
exec '/bin/sh', '-c', \$command if \$harmless;
END

# dry_run GOALS: what was refused, and what was printed
sub dry_run
{
	unlink "$dir/log";
	my ($status, $said) = capture("$make -n SHELL=$shell @_");
	my $log = -e "$dir/log" ? slurp("$dir/log") : '';

	return ($status, $said, join('', $log =~ /^refused: .*?\n(?=ran: |refused: |\z)/msg),
		$log);
}

sub files
{
	return (capture("find $dir/build -printf '%p %s %T@\n' | sort"))[1];
}

# Where nothing was built.
my ($status, $said, $refused, $log) = dry_run('all');
is($status, 0, 'a dry run where nothing was built') or diag($said);
like($said, qr{^ +LD .*libktask\.so\.}m, 'prints what would be made');
is($refused, '', 'and does nothing');
ok(!-e "$dir/build", 'and makes no directory');
like($log, qr/scripts\/features/, 'but asks what can be built');
is(join(' ', glob "$dir/tmp/*"), '', 'in a directory that it removes');

# What starts make for the other variants too asks for each.
my @variants = split ' ', (slurp("$top/mk/check.mk") =~ /^TEST_VARIANTS := (.+)/m)[0];
($status, $said, $refused) = dry_run('tests');
is($status, 0, 'the same of each variant') or diag($said);
like($said, qr{^ +LD .*/build/\Q$_\E/tests/api/}m, "is printed: $_")
	for grep { $_ ne 'plain' } @variants;
is($refused, '', 'and nothing is done');
ok(!-e "$dir/build", 'no directory is made');

# Where that was asked for before.  To ask takes five seconds of CPU time, and each of a
# dozen goals would ask for two variants more.  The answers that there are hold here too,
# or are asked for anew.
for (@variants) {
	my $answers = ($_ eq 'plain' ? '' : "$_/") . 'features';

	capture("mkdir -p $dir/build/$answers && cp -r $build/$answers/. $dir/build/$answers");
	capture("$make VARIANT=$_ features");
}
my $before = files();
like($before, qr/answers\.mk/, 'the answers are kept');
cmp_ok(scalar @goals, '>', 70, 'goals with a line of help');
for my $goal (sort @goals) {
	($status, $said, $refused) = dry_run($goal);
	# It has to be told where the sources of Task Bench are.
	is($status, 0, "make -n $goal ends well") or diag($said)
		unless $goal eq 'bench-task-bench';
	is($refused, '', "make -n $goal runs no command of a recipe");
}
is(files(), $before, 'none of it made or changed a file');

done_testing();
