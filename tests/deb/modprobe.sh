#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# In a guest with what DKMS has installed: modprobe finds the module, its device
# comes and goes, and VFIO's driver brings it along.

echo 1..5
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

modprobe vfio_iommu_type1 && [ -d /sys/module/ktask ]
result $? "VFIO's driver loads the module"
read -r version </sys/module/vfio_iommu_type1/version
[ "${version%+ktask}" != "$version" ]
result $? "it is the one that DKMS has installed"
