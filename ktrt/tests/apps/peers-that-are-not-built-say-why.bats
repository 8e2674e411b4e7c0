#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# heat's peers in Go and Rust where their tools are missing, fail, or work, which
# stand-ins do here: the build goes on, and what is missing is told beside the program.

load helpers

# build LANGUAGE: with the tools that are in bin
build() {
	run -0 env PATH="$PWD/bin" /bin/sh "$tree/ktrt/bench/apps/peers/build" "$1" \
		"$PWD/heat-$1"
}

# tool NAME: a stand-in that does what stands on standard input
tool() {
	{
		echo '#!/bin/sh'
		cat
	} >"bin/$1"
	chmod +x "bin/$1"
}

setup() {
	mkdir bin
	for name in cp dirname rm; do
		ln -s "$(command -v $name)" bin
	done
	# As an earlier build has left it.
	: >heat-go
	: >heat-rust
}

@test "a tool that is missing" {
	for language in go rust; do
		build $language
		[ -z "$output" ]
		[ ! -e heat-$language ]
	done
	[ "$(cat heat-go.why)" = 'no go' ]
	[ "$(cat heat-rust.why)" = 'no cargo' ]
}

@test "a tool that fails" {
	for name in go cargo; do
		tool $name <<-'END'
			echo 'no such module' >&2
			exit 1
		END
	done
	for language in go rust; do
		build $language
		[[ $output == *" failed, see $PWD/heat-$language.why" ]]
		[ ! -e heat-$language ]
		[ "$(cat heat-$language.why)" = 'no such module' ]
	done
}

@test "a tool that works" {
	tool go <<-'END'
		while [ "$1" != -o ]; do
			shift
		done
		echo built >"$2"
	END
	tool cargo <<-'END'
		while [ "$1" != --target-dir ]; do
			shift
		done
		/bin/mkdir -p "$2/release"
		echo built >"$2/release/heat-rust"
	END
	for language in go rust; do
		echo 'no tool' >heat-$language.why
		build $language
		[ -z "$output" ]
		[ "$(cat heat-$language)" = built ]
		[ ! -e heat-$language.why ]
	done
}
