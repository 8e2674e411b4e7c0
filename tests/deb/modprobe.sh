#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# In a guest with what DKMS has installed: modprobe finds the module, its device
# comes and goes.

echo 1..3
result() {
	if [ "$1" -eq 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
	fi
}

modprobe ktask
result $? 'modprobe loads the module'
[ -c /dev/ktask ] && [ -d /sys/module/ktask ]
result $? 'its device is there'
modprobe -r ktask && [ ! -e /dev/ktask ] && [ ! -d /sys/module/ktask ]
result $? 'modprobe takes it away'
