#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A callback that throws through ktask_register() in C++: every piece is taken
# back, the last first, the exception arrives, and the library goes on.  Where
# several calls run at once it ends the program.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../tests/support";
use House;
use Test::More;

my $dir = scratch();
my $program = "$dir/throws";

spew("$program.cpp", <<'CPP');
#include <ktask/register.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

static std::vector<void *> pieces;
static size_t throw_at;
static bool throw_back;
static bool wrong;

static int add(void *start, void *end, void *)
{
	if (pieces.size() == throw_at)
		throw std::runtime_error("refused");
	pieces.push_back(start);
	return 0;
}

static int take(void *start, void *end, void *)
{
	if (throw_back)
		throw std::runtime_error("kept");
	wrong = wrong || pieces.empty() || pieces.back() != start;
	if (!wrong)
		pieces.pop_back();
	return 0;
}

int main(int argc, char **argv)
{
	const size_t mib = 1 << 20, len = 64 * mib;
	void *at = mmap(nullptr, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	ktask_registration *registration;
	bool parallel = argc > 1 && !strcmp(argv[1], "parallel");

	ctl.register_func = add;
	ctl.unregister_func = take;
	ctl.unit_bytes = ctl.max_piece_bytes = 4 * mib;
	if (parallel)
		ctl.flags = KTASK_REGISTER_PARALLEL;
	for (throw_at = 0; throw_at < 16; throw_at++) {
		bool caught = false;

		madvise(at, len, MADV_DONTNEED);
		try {
			ktask_register(&registration, at, len, &ctl, nullptr);
		} catch (const std::runtime_error &error) {
			caught = !strcmp(error.what(), "refused");
		}
		if (!caught || !pieces.empty() || wrong || registration)
			return 1;
	}
	if (ktask_register(&registration, at, len, &ctl, nullptr))
		return 2;
	throw_back = argc > 1 && !strcmp(argv[1], "back");
	try {
		if (ktask_unregister(&registration, nullptr))
			return 3;
	} catch (...) {
		return 4;
	}
	puts("all was taken back");
	return 0;
}
CPP
my ($status, $said) = capture("$cxx -std=c++11 -g -I$top/ktask/include -o $program "
	. "$program.cpp -L$build -lktask -Wl,-rpath,$build");
is($status, 0, 'a program in C++ is made') or diag($said);

($status, $said) = capture($program);
is($status, 0, 'exceptions arrive, whichever call throws') or diag($said);
like($said, qr/all was taken back/, 'and nothing stays registered');

# Whether the exception or the call itself ends it: by abort().
for my $how (qw(parallel back)) {
	($status, $said) = capture("ulimit -c 0; $program $how");
	isnt($status, 0, "$how: an exception that cannot pass ends the program");
	unlike($said, qr/all was taken back/, "$how: at once");
}

done_testing();
