# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Builds programs of C++ with the runtime.
#
#	compile_cxx NAME <<-'END'	into $BATS_FILE_TMPDIR/NAME

. "${BASH_SOURCE[0]%/*}/../../../../tests/support/environment.bash"

compile_cxx() {
	local tree=$BATS_TEST_DIRNAME/../../..
	local build=${KTASK_BUILD:-$tree/build}
	local program=$BATS_FILE_TMPDIR/$1

	command -v "${CXX:-c++}" >/dev/null || skip "no C++ compiler"
	{
		cat <<-'END'
			#include <cstdio>
			#include <cstdlib>
			#include <ktask/runtime.hpp>

			#define check(...) \
				((__VA_ARGS__) ? (void)0 : (std::fprintf(stderr, \
					"line %d: %s\n", __LINE__, #__VA_ARGS__), \
					std::exit(1)))
			#line 1
		END
		cat
	} >"$program.cpp"
	"${CXX:-c++}" -std="${STD:-c++11}" -O1 -Wall -Wextra -Werror -pthread \
		-I"$tree/ktrt/include" -o "$program" "$program.cpp" \
		-L"$build" -lktrt -Wl,-rpath,"$(realpath "$build")"
}
