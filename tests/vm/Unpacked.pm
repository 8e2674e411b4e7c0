# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What is compressed in a kernel, which an emulated CPU takes a second and more to
# unpack: four times as long with six of them on two of the host's.
#
#   unpacked_kernel(PATH)	a file beside that kernel, made when it is not there;
#				PATH itself where nothing can be unpacked or QEMU
#				could not begin with it

package Unpacked;

use strict;
use warnings;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(unpacked_kernel);

# By what the compressed kernel begins with.
my @tools = (
	["\x28\xb5\x2f\xfd", 'zstd'],
	["\xfd7zXZ", 'xz'],
	["\x1f\x8b", 'gzip'],
	["\x02\x21\x4c\x18", 'lz4'],
);

# Documentation/arch/x86/boot.rst: where code begins and what is packed lies in it.
sub packed_part
{
	my ($kernel) = @_;

	return '' if length $kernel < 0x250 || substr($kernel, 0x202, 4) ne 'HdrS';
	my $sectors = ord substr($kernel, 0x1f1, 1);
	my ($offset, $length) = unpack 'VV', substr($kernel, 0x248, 8);
	my $begin = (($sectors || 4) + 1) * 512 + $offset;

	return '' if $length < 4 || $begin + $length > length $kernel;
	return substr $kernel, $begin, $length;
}

# Xen's note of type 18 tells where to begin.
sub has_entry
{
	return $_[0] =~ /^\x7fELF/ && $_[0] =~ /\x04\0{3}[\x04\x08]\0{3}\x12\0{3}Xen\0/;
}

# Return: whether OUT has been made.
sub unpack_kernel
{
	my ($path, $out) = @_;
	my $packed = packed_part(slurp($path));
	my ($tool) = map { $_->[1] } grep { index($packed, $_->[0]) == 0 } @tools;

	return 0 unless $tool && have($tool);
	# The last word is the size unpacked; gzip's is in its own trailer and stays.
	substr($packed, -4) = '' unless $tool eq 'gzip';
	spew("$out.packed", $packed);
	my ($status) = capture("$tool -dc <$out.packed >$out.new");
	my $well = !$status && has_entry(slurp("$out.new"));

	unlink "$out.packed";
	return 1 if $well && rename("$out.new", $out);
	unlink "$out.new";
	return 0;
}

sub is_newer
{
	my ($out, $path) = @_;

	return -e $out && (stat _)[9] >= (stat $path)[9];
}

sub unpacked_kernel
{
	my ($path) = @_;
	my $out = $path . '-unpacked';

	return $out if is_newer($out, $path);
	# The directory may be another user's.
	open(my $lock, '>', "$out.lock") or return $path;
	flock($lock, LOCK_EX);
	return $out if is_newer($out, $path) || unpack_kernel($path, $out);
	return $path;
}

1;
