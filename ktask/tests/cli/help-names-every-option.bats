#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Help goes to standard output, ends with 0, and names all that there is, as
# do the manual page and the completion.

load helpers

@test "ktask help, --help and -h print the same" {
	run -0 "$ktask" help
	local help=$output
	run -0 "$ktask" --help
	[ "$output" = "$help" ]
	run -0 "$ktask" -h
	[ "$output" = "$help" ]
	for word in help --help -h; do
		run -0 "$ktask" help "$word"
		[ "$output" = "$help" ]
	done
}

@test "the help lists every command, and each explains itself" {
	run -0 "$ktask" help
	local help=$output
	for command in run populate warm bench tune \
		stat top topo; do
		[[ $help == *"  $command "* ]]
		run -0 "$ktask" help "$command"
		local text=$output
		[[ $text == "usage: ktask $command "* ]]
		run -0 "$ktask" "$command" --help
		[ "$output" = "$text" ]
	done
}

@test "help fits a terminal of 80 columns" {
	for command in "" run populate warm bench tune \
		stat top topo; do
		run -0 "$ktask" help $command
		! grep -E '.{81}' <<<"$output" || false
	done
}

@test "page and completion of each command know each of its options" {
	for command in run populate warm bench tune \
		stat top topo; do
		run -0 "$ktask" help "$command"
		for option in $(grep -oE '^  --[a-z-]+' <<<"$output"); do
			echo "$command $option"
			grep -q "^\.It.*Fl Fl ${option#--}" \
				"$tree/ktask/man/ktask-$command.1" || [ "$option" = --help ]
			grep -q -e "$option" \
				"$tree/ktask/packaging/ktask.bash-completion"
		done
	done
}

@test "a page knows each variable that the sources read" {
	local names
	names=$(grep -rhoE '"KTASK_[A-Z_]+"' "$tree"/ktask/{user,ops,preload,cli} |
		tr -d '"' | grep -v -e KTASK_VERSION -e KTASK_LIBDIR | sort -u)
	[ -n "$names" ]
	# Of these two are not for people: `ktask stat` and `ktask run` set them.
	[ "$(grep -vc -e '^KTASK_STAT$' -e '^KTASK_RUN_RECORDS$' \
		<<<"$names")" -le 9 ]
	for name in $names; do
		echo "$name"
		grep -q "^.It Ev $name" "$tree"/ktask/man/ktask.1 \
			"$tree"/ktask/man/ktask-run.1
	done
}

@test "the version is the library's" {
	run -0 "$ktask" --version
	[[ $output =~ ^ktask\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	[ "${output#ktask }" = "$(sed -n 's/^Version: //p' "$build/ktask.pc")" ]
}

@test "a full disk is told" {
	[ -w /dev/full ] || skip "no /dev/full"
	run --separate-stderr sh -c "'$ktask' help >/dev/full"
	[ "$status" -eq 1 ]
	[ "$stderr" = "ktask: writing the output: No space left on device" ]
}

@test "completion offers commands, options and operations" {
	source "$tree/ktask/packaging/ktask.bash-completion"
	PATH=$build:$PATH
	complete_words() {
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		COMPREPLY=()
		_ktask
		echo "${COMPREPLY[*]}"
	}
	[[ $(complete_words ktask po) == populate ]]
	[[ $(complete_words ktask help be) == bench ]]
	[[ $(complete_words ktask bench --ru) == --runs ]]
	[[ $(complete_words ktask bench vm) == vm-start ]]
	[[ $(complete_words ktask tune dis) == discard ]]
	[[ $(complete_words ktask tune --dr) == --dry-run ]]
	[[ $(complete_words ktask bench --pages h) == huge ]]
	[[ $(complete_words ktask warm --d) == --direct ]]
	[[ $(complete_words ktask wa) == warm ]]
	[[ " $(complete_words ktask run '') " != *" --threads "* ]]
}
