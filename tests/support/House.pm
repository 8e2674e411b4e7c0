# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What the tests in build/, style/ and runner/ share: where things are, and
# running a command.  Does not count tests; Test::More does.

package House;

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);

our @EXPORT = qw($top $build $cc $cxx capture slurp spew scratch have);

our $top = abs_path(dirname(__FILE__) . '/../..');
our $build = $ENV{KTASK_BUILD} // "$top/build";
our $cc = $ENV{CC} || 'cc';
our $cxx = $ENV{CXX} || 'g++';

# Runs a shell command; both streams as one text, and the exit status.
sub capture
{
	my ($command) = @_;
	my $output = qx{( $command ) 2>&1};

	return ($? >> 8, $output);
}

sub slurp
{
	my ($path) = @_;

	open(my $in, '<', $path) or die "$path: $!\n";
	local $/;
	return scalar <$in>;
}

# Writes a file, its directories too; mode is optional.
sub spew
{
	my ($path, $text, $mode) = @_;

	make_path(dirname($path));
	open(my $out, '>', $path) or die "$path: $!\n";
	print $out $text;
	close($out) or die "$path: $!\n";
	chmod $mode, $path if $mode;
	return $path;
}

sub scratch
{
	return tempdir('house-XXXXXX', TMPDIR => 1, CLEANUP => 1);
}

sub have
{
	my ($command) = @_;

	return (capture("command -v $command"))[0] == 0;
}

1;
