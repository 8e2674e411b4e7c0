# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Programs that ktaskd serves in guests, and that are not made of C.
#
#   build_toucher()	a static program of Go, where there is Go: '' elsewhere

package Served;

use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(build_toucher);

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

1;
