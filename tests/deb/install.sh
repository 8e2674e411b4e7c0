#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Installs the packages in /mnt/1 on a bare machine (tests/bare/root), uses them,
# upgrades to those in /mnt/2, takes them away, and says what is left.
#
#   tests/deb/install.sh RELEASE	of the kernel whose headers lie in build/vm
#
# Leaves in /mnt/guest what a guest needs to load the module that DKMS has installed.
# What it does is said before by "== STEP", for packages-install-and-leave-nothing.t.

set -eu
step() { echo "== $1"; }

release=$1
modules=/lib/modules/$release
ours=$(for deb in /mnt/1/*.deb; do dpkg-deb -f "$deb" Package; done)

install() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
		-o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Each thing of the system: what it is, and what is in it.  Of directories, times and
# sizes tell nothing; what programs of the system note of every package is not ours, nor
# are the lists of depmod, and the key that DKMS makes for the first module that it signs.
list_system() {
	find / -xdev \( -path /srv -o -path /tmp -o -path /run -o -path /mnt \
		-o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache \
		-o -path /var/log -o -path /etc/ld.so.cache -o -path '/etc/*-' \
		-o -path "/usr$modules/modules.*" -o -path '/var/lib/dkms/mok.*' \
		\) -prune \
		-o -type f -path '/etc/*' -exec sha256sum {} + \
		-o -type f -printf '%p %m %u %g %s %T@\n' \
		-o -printf '%p %y %m %u %g %l\n' | sort
}

# A kernel with headers, with the modules and the source of VFIO only; and without its
# types (BTF), which take pahole.
prepare_kernel() {
	cp -a "build/vm/6.12/root/usr/src/." /usr/src
	cp -a build/vm/6.12/root/usr/lib/linux-kbuild* /usr/lib
	rm -f "/usr/src/linux-headers-$release/vmlinux"
	mkdir -p "$modules"
	ln -s "/usr/src/linux-headers-$release" "$modules/build"
	find build/vm/6.12/image/ -path "*/lib/modules/$release/kernel" \
		-exec cp -a {} "$modules" \;
	depmod "$release"
	cp build/vm/6.12/source/linux-source-*.tar.* /usr/src
}

# The driver that modprobe would load.
show_driver() {
	modinfo -k "$release" -F version vfio_iommu_type1
	modinfo -k "$release" -F filename vfio_iommu_type1
}

# All that ours want of others.
list_wanted() {
	for deb in /mnt/1/*.deb; do
		dpkg-deb -f "$deb" Depends | tr ',' '\n'
	done | sed 's/^ *//; /^$/d' | sort -u | grep -vE "^($(echo $ours | tr ' ' '|'))( |$)" |
		paste -sd, -
}

step prepare
install install gcc libc6-dev pkg-config >/dev/null
install satisfy "$(list_wanted)" >/dev/null
prepare_kernel
list_system >/tmp/before
ldconfig -p >/tmp/loader

step install
install install /mnt/1/*.deb || {
	tail -n 40 /var/lib/dkms/*/*/build/make.log
	exit 1
}

# ---- using them ----

use() {
	cat >/tmp/program.c <<-'C'
		#include <ktask/ops.h>
		#include <ktask/runtime.h>
		#include <stdio.h>
		#include <umt.h>

		static _Alignas(4096) char memory[64 << 20];

		static int add_one(void *sum)
		{
			++*(int *)sum;
			return 0;
		}

		int main(void)
		{
			struct umt *user;
			int sum = 0;

			if (ktask_populate(memory, sizeof(memory), 0) ||
			    ktask_fill(memory, sizeof(memory), "x", 1, 0) ||
			    memory[sizeof(memory) - 1] != 'x')
				return 1;
			if (umt_open(&user, NULL))
				return 2;
			umt_close(user);
			if (ktrt_start(NULL) || ktrt_run(add_one, &sum) ||
			    ktrt_stop())
				return 3;
			printf("sum %d of %s, %s, %s\n", sum, ktask_version(),
			       umt_version(), ktrt_version());
			return 0;
		}
	C
	# shellcheck disable=SC2046
	gcc -Wall -Werror -o /tmp/program /tmp/program.c \
		$(pkg-config --cflags --libs ktask umt ktrt)
	/tmp/program
	# shellcheck disable=SC2046
	gcc -o /tmp/alone /tmp/program.c -Wl,-Bstatic \
		$(pkg-config --static --cflags --libs ktrt umt ktask) -Wl,-Bdynamic
	/tmp/alone
}

say_version() {
	for command in ktask umt ktrt-info; do
		$command --version
	done
}

step use
use
say_version

step shim
ktask run --report=/tmp/report -- sh -c 'exit 7' || [ $? -eq 7 ]
cat /tmp/report
ktask populate --anon 64M
ktask topo >/dev/null

step module
dkms status
ls "$modules/updates/dkms"
show_driver
hook=/etc/kernel/header_postinst.d/ktask-vfio
$hook "$release" && $hook 6.1.0-none && echo 'a kernel is not refused'
getent group ktask
[ -z "$(find /etc/systemd -name 'umtd*')" ] && echo 'umtd is not started'

step guest
tools='/bin/sh /sbin/modprobe'
mkdir -p /mnt/guest/bin "/mnt/guest$modules"
# shellcheck disable=SC2086
for library in $(ldd $tools | grep -o '/[^ )]* (' | tr -d ' (' | sort -u); do
	mkdir -p "/mnt/guest${library%/*}"
	cp -L "$library" "/mnt/guest$library"
done
# shellcheck disable=SC2086
cp -L $tools /mnt/guest/bin
cp -r "$modules"/modules.* "$modules/updates" "$modules/kernel" "/mnt/guest$modules"

# ---- upgrading ----

step upgrade
install install /mnt/2/*.deb
# shellcheck disable=SC2016,SC2086
dpkg-query -W -f '${Package} ${Version}\n' $ours
dkms status

step same
/tmp/program
use
# shellcheck disable=SC2086
[ -z "$(dpkg --verify $ours)" ] && echo verified

# ---- taking them away ----

step remove
# shellcheck disable=SC2086
install remove $ours
hash -r
for name in ktask umt umtd ktrt-info; do
	! command -v $name || exit 1
done
! /tmp/program || exit 1

step purge
# shellcheck disable=SC2086
dpkg --purge $ours

step driver
show_driver

step left
list_system >/tmp/after
diff /tmp/before /tmp/after && ldconfig -p | diff /tmp/loader - &&
	echo nothing

step end
