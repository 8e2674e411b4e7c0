# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Programs that ktaskd serves in guests, and that are not made of C.
#
#   build_toucher()	a static program of Go, where there is Go: '' elsewhere
#   with_jvm(INITRD)	that archive with a JVM behind it, where one can be linked

package Served;

use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(build_toucher with_jvm);

sub build_toucher
{
	my $toucher = "$build/guests/toucher";
	my $source = "$top/tests/vm/touch_in_order.go";

	return '' unless have('go');
	open(my $lock, '>', "$toucher.lock") or die "$toucher.lock: $!\n";
	flock($lock, LOCK_EX);
	return $toucher if -e $toucher && (stat _)[9] > (stat $source)[9];
	my ($status, $said) = capture("cd $build/guests && env GOCACHE=$build/guests/go "
		. "GOPATH=$build/guests/go GO111MODULE=off CGO_ENABLED=0 "
		. "GOTOOLCHAIN=local GOFLAGS= go build -o $toucher.new $source && "
		. "mv $toucher.new $toucher");

	print map { "# $_\n" } split /\n/, $said;
	return $status ? '' : $toucher;
}

# Archives may follow one another.  An emulated CPU takes a second for a JVM, so that
# only a guest gets it that runs one.
sub with_jvm
{
	my ($initrd) = @_;
	my $both = $initrd =~ s/\.cpio$/-jvm.cpio/r;
	my ($status, $said) = capture("$top/tests/vm/link-jvm $build/guests && "
		. "cat $initrd $build/guests/jvm.cpio >$both");

	print map { "# $_\n" } split /\n/, $said;
	return $status ? $initrd : $both;
}

1;
