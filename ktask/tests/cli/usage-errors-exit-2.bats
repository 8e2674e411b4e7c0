#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Wrong usage is told in one line on standard error and ends with status 2.

load helpers

@test "no command" {
	says 2 "a command is missing" "$ktask"
}

@test "unknown command and option of ktask" {
	says 2 "no command 'nosuch'" "$ktask" nosuch
	says 2 "unknown option '--nosuch'" "$ktask" --nosuch
	says 2 "no command 'nosuch' (see 'ktask help')" "$ktask" help nosuch
}

@test "every command refuses an unknown option by its name" {
	for command in run populate warm bench \
		tune stat top topo; do
		says 2 "$command: unknown or ambiguous option '--nosuch'" \
			"$ktask" "$command" --nosuch
		says 2 "$command: unknown option '-q'" "$ktask" "$command" -q
		says 2 "$command: unknown option '-q'" "$ktask" "$command" -qh
		says 2 "option '--help=3' takes no value" \
			"$ktask" "$command" --help=3
	done
}

@test "letters behind an option are not taken for it" {
	says 2 "run: unknown option '-q'" "$ktask" run --dry-run -qz true
}

@test "a missing value" {
	says 2 "option '--size' needs a value" "$ktask" bench --size
	says 2 "option '--anon' needs a value" "$ktask" populate --anon
}

@test "a missing or a surplus operand" {
	says 2 "a command is missing" "$ktask" run --threads 2
	says 2 "an operation is missing" "$ktask" bench --runs 1
	says 2 "a path or --anon is missing" "$ktask" populate
	says 2 "unexpected argument 'b'" "$ktask" populate a b
	says 2 "a path is missing" "$ktask" warm
	says 2 "unexpected argument 'a'" "$ktask" populate --anon 64M a
	says 2 "unexpected argument 'fill'" "$ktask" bench populate fill
	says 2 "unexpected argument 'a'" "$ktask" topo a
	says 2 "compare takes two commands" "$ktask" bench compare true
	says 2 "compare takes no --threads" \
		"$ktask" bench --threads 1 compare true true
	says 2 "compare takes no --plot" \
		"$ktask" bench --plot x.svg compare true true
	says 2 "--names is for compare" "$ktask" bench --names a,b populate
	says 2 "--names 'a': not A,B" \
		"$ktask" bench --names a compare true true
	says 2 "--runs fixes the number of rounds" \
		"$ktask" bench --runs 3 --precision 5 populate
	says 2 "--max-time '0': not a number" \
		"$ktask" bench --max-time 0 populate
}

@test "options that exclude each other" {
	says 2 "--allocate makes a file longer: it needs a PATH" \
		"$ktask" populate --anon 64M --allocate 64M
}

@test "sizes that are none" {
	for size in "" G 1.5G -1 0 0G 8X 8GG 8GiBs " 8G" 0x10; do
		says 2 "--size '$size': not a size" \
			"$ktask" bench --size "$size" populate
	done
	for size in 99999999999999999999 8388608T 9223372036854775808; do
		says 2 "--size '$size': too large" \
			"$ktask" bench --size "$size" populate
	done
	says 2 "--min '5Z': not a size" "$ktask" run --min 5Z true
	says 2 "--anon 'big': not a size" "$ktask" populate --anon big
}

@test "thread counts and lists that are none" {
	for list in "" 0 0-2 4-2 1, ,1 1,,2 1-2-3 a 1-x 4097 -1; do
		says 2 "--threads '$list': not a list" \
			"$ktask" bench "--threads=$list" populate
	done
	for count in "" 0 -1 two 1-2 4097; do
		says 2 "--threads '$count': not a number" \
			"$ktask" run "--threads=$count" true
		says 2 "--threads '$count': not a number" \
			"$ktask" populate "--threads=$count" --anon 1M
	done
}

@test "other values that are none" {
	says 2 "--runs '0': not a number" "$ktask" bench --runs 0 populate
	says 2 "--pages 'big': not huge, small or default" \
		"$ktask" bench --pages big populate
	says 2 "must end in .svg or .png" \
		"$ktask" bench --plot plot.pdf populate
	says 2 "no operation 'nosuch'" "$ktask" bench nosuch
	for ops in "" mmap, mremap mmap,,mlock mmaps; do
		says 2 "--ops '$ops': not a list" "$ktask" run --ops "$ops" true
	done
}
