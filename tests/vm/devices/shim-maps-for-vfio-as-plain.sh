#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A program that calls VFIO_IOMMU_MAP_DMA on a device behind an IOMMU: what comes of each
# call is the same as without the shim, and its memory was made present before.

. same.sh

same 'mappings of VFIO' vfio-cases
takes register
grep '^ktask: register' /tmp/report | sed 's/^/# /'
finish
