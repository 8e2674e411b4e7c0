#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# mandoc finds nothing to object to in any page, and every public function
# has one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support";
use House;
use Test::More;

my @pages = glob "$top/man/*.[1-8]";
plan skip_all => 'mandoc is not here' unless have('mandoc');
ok(scalar @pages, 'there are manual pages');

# Not objections: that a page of ours is not installed on this machine.
my $lint = 'mandoc -T lint -W style';
for my $page (@pages) {
	my $name = $page =~ s{.*/}{}r;
	# Another name of a page, in the form that distributions use.
	if (slurp($page) =~ m{^\.so man\d/(\S+)\n\z}) {
		ok(-e "$top/man/$1", "$name leads to a page");
		next;
	}
	my (undef, $said) = capture("cd $top && $lint man/$name");
	my @objections = grep { !/referenced manual not found|outdated mandoc\.db/ }
		split /\n/, $said;

	is_deeply(\@objections, [], $name);
}

my %is = map { s{.*/}{}r => 1 } @pages;
my $headers = join '', map { slurp($_) } glob "$top/include/ktask/*.h";
my @public = $headers =~ /^KTASK_API [^;(]*?\*?(\w+)\(/mg;
push @public, $headers =~ /^KTRT_API [^;(]*?\*?(\w+)\(/mg;
$headers .= slurp("$top/include/umt.h");
push @public, $headers =~ /^UMT_API [^;(]*?\*?(\w+)\(/mg;
push @public, $headers =~ /^static inline \w+ (?!kt_)(\w+)\(/mg;
for my $function (sort @public) {
	ok($is{"$function.3"}, "$function has a page");
}
ok($is{'ktask.1'}, 'the command has a page');

done_testing();
