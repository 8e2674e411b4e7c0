#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What README.md and the pages in doc/ and PRODUCT/doc/ name is there: files of the
# tree, by their path from its root, functions, and what links lead to.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my @pages = ('README.md', 'CONTRIBUTING.md',
	map { s{^\Q$top\E/}{}r } glob "$top/doc/*.md $top/{ktask,umt,ktrt}/doc/*.md");
# Those of the products too: a path that begins there is not one from the root.
my $directories = qr/bench|common|doc|ktask|ktrt|mk|scripts|tests|umt
	|apps|bindings|cli|core|engine|examples|include|kernel|kmod|lib|man|ops
	|packaging|preload|runtime|sim|user|util/x;
my @sources = grep { m{\.[ch]$|^ktask/bindings/.*\.(?:py|rs)$} } split /\n/, (capture("cd $top && "
	. 'find common ktask ktrt umt tests -type f'))[1];
my %word = map { $_ => 1 } map { slurp("$top/$_") =~ /(\w+)/g } @sources;

# Figures of speech, not files: `ktask/cli/cmd/cmd_NAME.c`.  Tests may be named without
# their ending.
sub files_missing
{
	my @named = grep { !/[A-Z]{4}/ } $_[0] =~ m{`((?:$directories)/[\w./*+-]*)`}g;

	return grep { my @found = glob "$top/$_ $top/$_.*"; !grep { -e } @found }
		@named;
}

sub functions_missing
{
	return grep { !$word{$_} } $_[0] =~ /`(\w{6,})\(\)`/g;
}

sub links_missing
{
	my ($page, $text) = @_;
	my $from = $page =~ s{[^/]*$}{}r;

	return grep { !/^\w+:/ && !-e "$top/$from$_" }
		$text =~ /\]\(([^)#]+)(?:#[^)]*)?\)/g;
}

for my $page (@pages) {
	my $text = slurp("$top/$page");

	is_deeply([files_missing($text)], [], "files that $page names");
	is_deeply([functions_missing($text)], [], "functions that $page names");
	is_deeply([links_missing($page, $text)], [], "links of $page");
}

# The test itself finds what is missing.
is_deeply([files_missing('`core/job.c` `ktask/core/job.c`')], ['core/job.c'],
	'a file that is missing is found');
is_deeply([functions_missing('`kt_no_such()` `kt_job_work()`')],
	['kt_no_such'], 'a function that is missing is found');
is_deeply([links_missing('ktask/doc/x.md', '[a](no.md) [b](engine.md#how)')],
	['no.md'], 'a link that leads nowhere is found');

done_testing();
