# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# An apt with a state of its own, for what this machine does not install:
#
#   own_apt DIR STATUS SUITE...	apt-get and apt-cache know these suites of the
#				machine's mirror from now on, the first above
#				the others, and nothing else; STATUS is what
#				counts as installed, and may be empty
#   unpack DEB DIRECTORY
#   lock_cache FILE		for this script alone until it ends
#
# What goes wrong is told by quit STATUS WHY of the script that reads this; 77
# says that it cannot be had here.
#
# Behaves badly on a machine whose apt knows no Debian mirror.
# shellcheck shell=sh

own_apt() {
	apt=$1
	installed=$2
	shift 2
	# $1 is for the shell of the format.
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI)' \
		'Origin: Debian' 'Identifier: Packages' |
		grep -v security | head -n 1)
	[ -n "$mirror" ] || quit 77 'apt knows no Debian mirror'
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e $keys ] || quit 77 "no $keys"

	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
	: >"$apt/status"
	[ -z "$installed" ] || cat "$installed" >"$apt/status"
	: >"$apt/sources"
	for suite in "$@"; do
		echo "deb [signed-by=$keys] $mirror $suite main" >>"$apt/sources"
	done
	cat >"$apt/conf" <<-END
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt";
		Dir::Cache::archives "$apt/archives";
		Dir::Etc::sourcelist "$apt/sources";
		Dir::Etc::sourceparts "$apt/parts";
		Dir::Etc::preferencesparts "$apt/parts";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::Retries "3";
		APT::Install-Recommends "false";
		APT::Default-Release "$1";
		APT::Sandbox::User "";
	END
	export APT_CONFIG="$apt/conf"
	timeout 300 apt-get -qq update >"$apt/log" 2>&1 ||
		quit 77 "apt-get update: $(tail -n 1 "$apt/log")"
}

# The cache may be another user's.
lock_cache() {
	(: >>"$1") 2>/dev/null || quit 77 "may not write $1"
	exec 9>"$1"
	flock 9
}

unpack() {
	dpkg-deb --fsys-tarfile "$1" |
		tar -x -C "$2" --keep-directory-symlink --no-same-owner
}
