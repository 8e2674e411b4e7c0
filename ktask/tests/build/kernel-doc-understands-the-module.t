#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What other modules call has kernel-doc, and the kernel's own script, which comes with
# the headers for guests (tests/vm/fetch), has nothing to say against any.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $header = "$top/ktask/kernel/ktask_kernel.h";
my @sources = (glob("$top/ktask/kernel/*.[ch] $top/ktask/kernel/*/*.[ch]"), "$top/ktask/include/uapi/linux/ktask.h");
my $text = slurp($header);
my %said;

for my $file (@sources) {
	$said{$_} = 1 for slurp($file) =~
		m{^/\*\*\n \* (?:(?:typedef|struct|define) )?(\w+) - }mg;
}
my @exported = map { slurp($_) =~ /^EXPORT_SYMBOL_GPL\((\w+)\)/mg } @sources;

cmp_ok(scalar @exported, '>=', 6, 'functions are exported');
is_deeply([grep { !$said{$_} } @exported], [], 'each has kernel-doc');
for (['inline function', qr/^static inline \w+ (\w+)\(/m],
     ['macro', qr/^#define (\w+)(?:\(| \d)/m],
     ['structure', qr/^struct (\w+) \{/m],
     ['function type', qr/^typedef .*?\(\*(\w+)\)/m]) {
	my ($kind, $pattern) = @$_;
	my @names = $text =~ /$pattern/g;

	ok(scalar @names, "there is a $kind");
	is_deeply([grep { !$said{$_} } @names], [], "each $kind has it");
}

SKIP: {
	my $cache = $ENV{KTASK_TEST_VM_CACHE} // "$build/vm";
	my ($fetched, $why) = capture("$top/tests/vm/fetch '$cache' 6.12");
	my ($script) = glob "'$cache'/6.12/root/usr/lib/linux-kbuild-*/scripts/kernel-doc";

	skip((split /\n/, $why)[-1], 1) if $fetched == 77;
	ok($script && -x $script, 'the headers have the script') or diag($why);
	my ($status, $said) = capture("$script -none -Wall @sources");

	# Most files have none, and need none.  A type of functions that return a
	# pointer is too much for the script of Linux 6.12.
	my @complaints = grep {
		/warning|error/ && !/no structured comments found/
		&& !/prototype for typedef ktask_iter_func\b/
	} split /\n/, $said;
	is("@complaints", '', 'the kernel\'s script reads it all');
}

done_testing();
