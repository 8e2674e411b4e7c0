#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# What DKMS builds of VFIO's driver is the source of the very kernel that it is for,
# patched; of any other nothing is made, and why is said.  The kernels are made up.

use strict;
use warnings;
use File::Path qw(make_path);
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

for my $tool (qw(patch tar xz)) {
	plan skip_all => "no $tool" unless have($tool);
}

my $driver = 'drivers/vfio/vfio_iommu_type1.c';
my $with = scratch();
my $made = "$with/made";
my $headers = "$with/headers";
my $sources = "$with/sources";

# ---- what there is ----

sub write_file
{
	my ($path, $text) = @_;

	make_path($path =~ s{/[^/]*$}{}r);
	spew($path, $text);
}

# A kernel that DKMS builds for.
sub make_headers
{
	my ($minor, $sublevel, $type1) = @_;
	my $generated = "$headers/include/generated";

	write_file("$generated/utsrelease.h", qq(#define UTS_RELEASE "6.$minor.$sublevel-made-up"\n));
	write_file("$generated/package.h",
		   qq(#define LINUX_PACKAGE_ID " Debian 6.$minor.$sublevel-1"\n));
	write_file("$generated/uapi/linux/version.h", <<END);
#define LINUX_VERSION_MAJOR 6
#define LINUX_VERSION_PATCHLEVEL $minor
#define LINUX_VERSION_SUBLEVEL $sublevel
END
	write_file("$headers/include/config/auto.conf", "CONFIG_VFIO_IOMMU_TYPE1=$type1\n");
}

# What the package linux-source-6.12 brings.
sub make_source
{
	my ($sublevel, $line, $version) = @_;
	my $tree = "$with/linux-source-6.12";

	write_file("$tree/Makefile",
		   "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = $sublevel\nEXTRAVERSION =\n");
	write_file("$tree/$driver", "#define @{[$version // 'DRIVER_VERSION']}  \"0.2\"\n$line\n");
	write_file("$tree/drivers/vfio/vfio.h", "/* private */\n");
	make_path($sources);
	system("tar -cJf $sources/linux-source-6.12.tar.xz -C $with linux-source-6.12") == 0
		or die "tar\n";
}

# Returns what was said, and the driver, if one was made.
sub prepare
{
	unlink glob "$made/*.[ch]";
	my ($status, $said) = capture("$made/prepare $headers $sources");
	my $path = "$made/vfio_iommu_type1.c";
	my $text = -e $path ? slurp($path) : undef;

	is($status, defined $text ? 0 : 1, 'the status says whether there is a driver');
	return ($said, $text);
}

my ($status, $said) = capture("make -s -C $top B=$build DKMS_VFIO=$made dkms-vfio");
is($status, 0, 'its directory is made') or diag($said);
my @patches = map { s{.*/}{}r } glob "$made/patches/6.12/*.patch";
is_deeply(\@patches, [map { s{.*/}{}r } grep { slurp($_) =~ m{^\+\+\+ b/\Q$driver\E}m }
		      glob "$top/ktask/kernel/series/6.12/*.patch"],
	  'with the patches of the series for this driver, and no other');
ok(@patches > 0, 'of which there are some');
like(slurp("$made/dkms.conf"), qr/^BUILD_EXCLUSIVE_KERNEL="\^\(6\\\.12[|)]/m,
     'for kernels that there are patches for');

unlink glob "$made/patches/6.12/*.patch";
write_file("$made/patches/6.12/0001-made-up.patch", <<"END");
--- a/$driver
+++ b/$driver
@@ -1,2 +1,2 @@
 #define DRIVER_VERSION  "0.2"
-int one_thread;
+int several_threads;
END

# ---- the right one ----

make_headers(12, 7, 'm');
make_source(7, 'int one_thread;');
my $text;
($said, $text) = prepare();
is($text, qq(#define DRIVER_VERSION  "0.2+ktask"\nint several_threads;\n),
   'the driver is patched, and its version tells it from the other one');
ok(-e "$made/vfio.h", 'its header is there');
is($said, '', 'nothing is said');

# ---- others ----

my @wrong = (
	['a newer source', sub { make_source(8, 'int one_thread;') },
	 qr/is Linux 6\.12\.8, and .* is 6\.12\.7$/],
	['another driver', sub { make_source(7, 'int two_threads;') },
	 qr/0001-made-up\.patch does not apply to the source of 6\.12\.7-made-up/],
	['a driver without a version', sub {
		system("sed -i s/DRIVER_VERSION/NUMBER/ $made/patches/6.12/*.patch");
		make_source(7, 'int one_thread;', 'NUMBER');
	 },
	 qr/the driver has no version/],
	['a driver that is built in', sub { make_headers(12, 7, 'y') },
	 qr/the type1 driver of 6\.12\.7-made-up is no module/],
	['a kernel without patches', sub { make_headers(13, 7, 'm') },
	 qr/no patches for Linux 6\.13/],
	['no source', sub { make_headers(12, 7, 'm'); unlink glob "$sources/*" },
	 qr/no \S+tar\.xz for 6\.12\.7-made-up: install linux-source-6\.12, version 6\.12\.7-1/],
	['no headers', sub { system("rm -r $headers") }, qr/no headers of a kernel in /],
);

for (@wrong) {
	my ($what, $make, $wanted) = @$_;

	$make->();
	($said, $text) = prepare();
	is($text, undef, "$what: no driver");
	like($said, $wanted, "$what: and why");
}

done_testing();
