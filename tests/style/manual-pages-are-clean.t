#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# mandoc finds nothing to object to in any page, every public function and
# every subcommand has one, no page is long, and pages refer to pages.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my @pages = glob "$top/*/man/*.[1-8]";
plan skip_all => 'mandoc is not here' unless have('mandoc');
ok(scalar @pages, 'there are manual pages');

# Not objections: that a page of ours is not installed on this machine.
my $lint = 'mandoc -T lint -W style';
for my $page (@pages) {
	my $name = $page =~ s{.*/}{}r;
	# Another name of a page, in the form that distributions use.
	my $directory = $page =~ s{/[^/]*$}{}r;
	if (slurp($page) =~ m{^\.so man\d/(\S+)\n\z}) {
		ok(-e "$directory/$1", "$name leads to a page");
		next;
	}
	my (undef, $said) = capture("cd $directory/.. && $lint man/$name");
	my @objections = grep { !/referenced manual not found|outdated mandoc\.db/ }
		split /\n/, $said;

	is_deeply(\@objections, [], $name);
}

my %is = map { s{.*/}{}r => 1 } @pages;
my $headers = join '', map { slurp($_) } glob "$top/*/include/ktask/*.h";
my @public = $headers =~ /^KTASK_API [^;(]*?\*?(\w+)\(/mg;
push @public, $headers =~ /^KTRT_API [^;(]*?\*?(\w+)\(/mg;
$headers .= slurp("$top/umt/include/umt.h");
push @public, $headers =~ /^UMT_API [^;(]*?\*?(\w+)\(/mg;
push @public, $headers =~ /^static inline \w+ (?!kt_)(\w+)\(/mg;
for my $function (sort @public) {
	ok($is{"$function.3"}, "$function has a page");
}
ok($is{'ktask.1'}, 'the command has a page');

# A page for each subcommand, and in the overview each has its line.
my %table = (ktask => "$top/ktask/cli/main.c", umt => "$top/umt/cmd/umt.c");
for my $command (sort keys %table) {
	my $overview = slurp("$top/$command/man/$command.1");
	my @names = slurp($table{$command}) =~ /^\t\{ "(\w+)",/mg;
	cmp_ok(scalar @names, '>=', 4, "$command has subcommands");
	for my $name (@names) {
		ok($is{"$command-$name.1"}, "$command $name has a page");
		like($overview, qr/^\.It Xr $command-$name 1$/m,
			"$command.1 names it");
	}
}

# Who looks up a function finds it without leafing: 250 lines.
my $ours = qr/(?:ktask|umt|umtd|ktrt)(?:[-_.]\w+)*/;
for my $page (grep { slurp($_) !~ /^\.so / } @pages) {
	my $name = $page =~ s{.*/}{}r;
	my $text = slurp($page);
	cmp_ok($text =~ tr/\n//, '<=', 250, "$name is short");
	like($text, qr/^\.Sh SEE ALSO$/m, "$name refers to others");
	my @missing = grep { !$is{$_} } map { s/ /./r }
		$text =~ /^\.(?:It )?Xr ($ours \d)\b/mg;
	is_deeply(\@missing, [], "what $name refers to is there");
}

done_testing();
