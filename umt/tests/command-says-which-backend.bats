#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# umt info names the backend and the reasons; wrong usage is one line and
# status 2.

load helpers

teardown() {
	[ -z "${umtd:-}" ] || kill "$umtd"
	[ -z "${work:-}" ] || rm -r "$work"
}

@test "info: one works, the others say why not" {
	run -0 "$umt" info
	[[ ${lines[0]} == "threads are monitored by "* ]]
	[[ $output == *" explicit  yes"* ]]
	run -0 "$umt" info --json
	is_true '.backend | IN("bpf", "perf", "explicit")'
	is_true '.[.backend].works and .explicit.works'
	is_true '[.bpf, .perf, .explicit] | all(.works == (.why == ""))'
}

@test "info: without rights it is not eBPF, and watching says why" {
	[ "$(id -u)" -eq 0 ] || skip "only root can give rights up"
	cp "$umt" "$BATS_TEST_TMPDIR/umt"
	chmod 755 "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/umt"
	if ! setpriv --reuid 65534 --clear-groups \
		"$BATS_TEST_TMPDIR/umt" --version; then
		skip "others cannot reach the directory of the tests"
	fi
	run -0 setpriv --reuid 65534 --clear-groups \
		"$BATS_TEST_TMPDIR/umt" info --json
	is_true '.backend != "bpf" and (.bpf.why | length) > 10'
	says 1 "watching threads: " setpriv --reuid 65534 --clear-groups \
		"$BATS_TEST_TMPDIR/umt" stat true
}

@test "watching says why also where umtd serves those without rights" {
	[ "$(id -u)" -eq 0 ] || skip "only root may run umtd"
	need_bpf
	# Others cannot reach the directory of the tests.
	work=$(mktemp -d /tmp/umtd-XXXXXX)
	cp "$umt" "$work"
	chmod 755 "$work" "$work/umt"
	export UMT_SOCKET=$work/socket
	"$KTEST_BUILD/umtd" --socket "$UMT_SOCKET" 3>&- &
	umtd=$!
	for _ in {1..600}; do
		[ ! -S "$UMT_SOCKET" ] || break
		sleep 0.1
	done
	somebody=(setpriv --reuid 65534 --clear-groups)
	# It may not listen yet.
	for _ in {1..600}; do
		run -0 "${somebody[@]}" "$work/umt" info --json
		[[ $output == *"onnection refused"* ||
			$output == *"timed out"* ]] || break
		sleep 0.1
	done
	echo "$output"
	is_true '.backend == "bpf"'
	for command in stat top; do
		says 1 "CAP_BPF and CAP_PERFMON are needed" \
			"${somebody[@]}" "$work/umt" $command true
	done
}

@test "wrong usage" {
	says 2 "a command is missing" "$umt"
	says 2 "no command 'nosuch'" "$umt" nosuch
	says 2 "unknown option '--nosuch'" "$umt" --nosuch
	for command in info stat top record; do
		says 2 "unknown option '--nosuch'" "$umt" "$command" --nosuch
		says 2 "unknown option '-q'" "$umt" "$command" -q
		says 2 "unknown option '-q'" "$umt" "$command" -qh
		says 2 "option '--help=3' takes no value" \
			"$umt" "$command" --help=3
	done
	for command in stat top record; do
		says 2 "$command: a command is missing" "$umt" "$command"
	done
	says 2 "unknown option '-q'" "$umt" record --output=x -qh
	says 2 "option '-o' needs a value" "$umt" record -o
	says 2 "option '--output' needs a value" "$umt" record --output
	says 2 "info: unexpected argument 'x'" "$umt" info x
	for interval in "" 0 -1 x 1s 3600001; do
		says 2 "--interval '$interval': not a number" \
			"$umt" top --interval "$interval" true
	done
	for pid in "" 0 -1 x 1s 4194305; do
		says 2 "--pid '$pid': not the number" "$umt" top --pid "$pid"
	done
	says 2 "--pid and a command exclude each other" "$umt" top --pid 1 true
}

@test "help names every option, and so does the page of its command" {
	run -0 "$umt" --help
	for command in info stat top record; do
		[[ $output == *" $command "* ]]
		page=$(mandoc -T ascii "$tree/umt/man/umt-$command.1" |
			sed "s/.\x08//g")
		for option in $("$umt" "$command" --help |
			grep -o -- ' --[a-z]\+' | sort -u); do
			[[ $page == *"$option"* ]] || {
				echo "umt-$command.1 does not know $option"
				return 1
			}
		done
	done
	run -0 "$umt" --version
	[ "$output" = "umt $("$tree/scripts/version")" ]
}

@test "completion offers commands, their options and processes" {
	source "$tree/umt/packaging/umt.bash-completion"
	complete_words() {
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		COMPREPLY=()
		_umt
		echo "${COMPREPLY[*]}"
	}
	[[ $(complete_words umt re) == record ]]
	[[ $(complete_words umt info --js) == --json ]]
	[[ $(complete_words umt stat --ou) == --output ]]
	[[ " $(complete_words umt top --pid '') " == *" $$ "* ]]
	[[ " $(complete_words umt stat '') " != *" --json "* ]]
	for command in info stat top record; do
		for option in $("$umt" "$command" --help |
			grep -oE -- '^  (-[a-z], )?--[a-z]+' | grep -o -- '--.*'); do
			[[ $(complete_words umt "$command" "$option") == \
				"$option" ]] || {
				echo "completion does not know $command $option"
				return 1
			}
		done
	done
}
