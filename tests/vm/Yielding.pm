# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Emulated CPUs that spin, and give the host's CPU away: tests/vm/emulator.
#
#   yielding(QEMU)	words for its command line: nothing where it cannot be built, or
#			QEMU does not take it

package Yielding;

use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(yielding);

sub build_plugin
{
	my $plugin = "$build/guests/yield_pauses.so";
	my $source = "$top/tests/vm/emulator/yield_pauses.c";

	system('mkdir', '-p', "$build/guests");
	open(my $lock, '>', "$plugin.lock") or die "$plugin.lock: $!\n";
	flock($lock, LOCK_EX);
	return $plugin if -e $plugin && (stat _)[9] > (stat $source)[9];
	my ($status, $said) = capture("$cc -O2 -Wall -Wextra -Werror -shared -fPIC "
		. "-o $plugin.new $source && mv $plugin.new $plugin");

	print map { "# $_\n" } split /\n/, $said;
	return $status ? '' : $plugin;
}

# A machine of nothing, which its monitor ends at once.
sub yielding
{
	my ($qemu) = @_;
	my $plugin = build_plugin();
	my ($status) = capture("echo quit | '$qemu' -nodefaults -display none -machine none "
		. "-accel tcg -plugin '$plugin' -monitor stdio");

	return $plugin && !$status ? ('-plugin', $plugin) : ();
}

1;
