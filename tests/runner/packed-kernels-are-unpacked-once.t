#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Guests begin with a kernel that is unpacked already, where one can be had: of what
# cannot be unpacked, or could not be begun with, the packed one is booted.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../support", "$FindBin::Bin/../vm";
use House;
use Test::More;
use Unpacked;

my $dir = scratch();
my $note = pack('VVV', 4, 8, 18) . "Xen\0" . pack('VV', 0x1000000, 0);
my $elf = "\x7fELF" . ("\0" x 5000) . $note . ("code" x 1000);

# A kernel of 2 sectors of setup, with this packed some bytes behind them.
sub kernel
{
	my ($name, $packed) = @_;
	my $text = "\0" x (3 * 512 + 100) . $packed . pack('V', 0) . 'rest';

	substr($text, 0x1f1, 1) = "\2";
	substr($text, 0x202, 4) = 'HdrS';
	substr($text, 0x248, 8) = pack 'VV', 100, length($packed) + 4;
	return spew("$dir/$name", $text);
}

sub packed
{
	my ($how, $text) = @_;
	my ($status, $packed) = capture("$how -c <" . spew("$dir/plain", $text));

	return $packed;
}

# Kernels have the older format of lz4.
for my $how ('gzip', 'xz', 'zstd', 'lz4 -l') {
	SKIP: {
		my ($tool) = split / /, $how;

		skip "no $tool", 2 unless have($tool);
		my $kernel = kernel($tool, packed($how, $elf));
		my $found = unpacked_kernel($kernel);

		isnt($found, $kernel, "what $tool has packed is unpacked");
		ok(slurp($found) eq $elf, 'whole');
	}
}

my $kernel = kernel('once', packed('gzip', $elf));
my $found = unpacked_kernel($kernel);
spew($found, 'as it was left');
is(slurp(unpacked_kernel($kernel)), 'as it was left', 'once is enough');
utime(time + 100, time + 100, $kernel);
ok(slurp(unpacked_kernel($kernel)) eq $elf, 'but for another kernel');

my %unfit = (
	'without the note of where to begin' =>
		kernel('noteless', packed('gzip', $elf =~ s/Xen/Zen/r)),
	'that is no kernel' => kernel('text', packed('gzip', "nothing\n" x 100)),
	'of an unknown kind' => kernel('unknown', $elf),
	'that is damaged' => kernel('damaged',
				    substr(packed('gzip', $elf), 0, 30)),
	'without a header' => spew("$dir/short", 'vmlinuz'),
);
for my $what (sort keys %unfit) {
	is(unpacked_kernel($unfit{$what}), $unfit{$what},
	   "one $what is booted as it is");
}
is_deeply([glob "$dir/*.new $dir/*.packed"], [], 'nothing is left behind');

done_testing();
