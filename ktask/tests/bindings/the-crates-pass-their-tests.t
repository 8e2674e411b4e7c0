#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# `cargo test` of the Rust crates in the tree, then the crates as `make crates` packs
# them, out of the tree: these hold all sources that they compile.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $rust = "$top/ktask/bindings/rust";
my $dir = scratch();

plan skip_all => 'no cargo' if !have('cargo');
# What panics on purpose need not tell where.
$ENV{RUST_BACKTRACE} = 0;
@ENV{qw(CARGO_PROFILE_DEV_DEBUG CARGO_PROFILE_TEST_DEBUG CARGO_INCREMENTAL)} = (0) x 3;
$ENV{CARGO_TARGET_DIR} = "$build/rust";
$ENV{CARGO_TERM_COLOR} = 'never';
$ENV{CARGO_NET_RETRY} = 1;
my ($status, $said) = capture("cd $rust && timeout 120 cargo fetch --locked");
plan skip_all => 'cargo cannot fetch crates: ' . ($said =~ /^error: (.+)$/m)[0]
	if $status;
$ENV{CARGO_NET_OFFLINE} = 'true';

($status, $said) = capture("cd $rust && cargo test --locked --no-fail-fast");
is($status, 0, 'all tests together') or diag($said);
my ($file) = '';
for (split /\n/, $said) {
	$file = $1 if m{^\s+Running \S*?(\w+)\.rs } || /^\s+Doc-tests (\w+)/;
	ok($2 eq 'ok', "$file: $1") if /^test (.+) \.\.\. (ok|FAILED)/;
}

($status, $said) = capture("cd $rust && cargo run -q --locked --example guest_memory 256");
is($status, 0, 'the example of a virtual machine monitor runs') or diag($said);
like($said, qr/^256 MiB of guest memory are there$/m, 'and has made the memory');

($status, $said) = capture(($ENV{MAKE} || 'make') . " -s -C $top B=$build crates");
is($status, 0, 'make crates') or diag($said);
is((capture("cp -r $build/crates $dir"))[0], 0, 'taken out of the tree');
# Checking compiles the C sources, and links nothing.
($status, $said) = capture("cd $dir/crates && cargo check -q --locked --lib -p ktask "
	. "--target-dir $dir/target");
is($status, 0, 'they can be built there') or diag($said);
($status, $said) = capture("cd $dir/crates && cargo package --list --allow-dirty "
	. '--locked -p ktask-sys');
like($said, qr{^csrc/\S*include/ktask/ops\.h$}m, 'the package has the headers');
like($said, qr{^csrc/\S*core/claim\.c$}m, 'and the sources');

done_testing();
