#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Builds the packages in the clone of a bare machine (tests/bare/root), into /mnt:
#
#   1/	as `make deb` makes them
#   2/	of a newer version
#
# What it does is said before by "== STEP", for packages-install-and-leave-nothing.t.

set -eu
step() { echo "== $1"; }

# Sums of the packages in a directory, without that.
sums() {
	(cd "$1" && sha256sum -- *.deb *.dsc *.tar.*)
}

step build
make deb

step tools
make deps NEED=lint

step lint
lintian --info --display-info --tag-display-limit 0 --fail-on none \
	build/deb/*.changes

# Elsewhere, by somebody else, at another time of day.
step again
sums build/deb >/tmp/sums
(umask 077; TZ=Pacific/Chatham LC_ALL=C make B=build/elsewhere deb)
sums build/elsewhere/deb | diff /tmp/sums - && echo same
rm -r build/elsewhere

# Without the symbols for debuggers.
step newer
mkdir /mnt/1 /mnt/2
for deb in build/deb/*.deb; do
	case $deb in
	*-dbgsym_*) ;;
	*) cp "$deb" /mnt/1 ;;
	esac
done
cd build/deb/ktask-*/
{
	sed '1s/)/+1)/; /^  /,/^ --/{ /^ --/!d; }' debian/changelog | sed '/^ --/q' |
		sed '2a\  * A newer version.\n'
	echo
	cat debian/changelog
} >debian/newer
mv debian/newer debian/changelog
# What was compiled stays.
dpkg-buildpackage -us -uc -b -nc >/tmp/log 2>&1 || { tail -n 40 /tmp/log; exit 1; }
cp ../*+1_*.deb /mnt/2
rm -f /mnt/2/*-dbgsym_*
ls /mnt/1 /mnt/2
step end
