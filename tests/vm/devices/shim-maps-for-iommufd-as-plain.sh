#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A program that calls IOMMU_IOAS_MAP: the device reaches the same pages as without the
# shim.  Where the kernel has what the shim reads requests by (CROSS_MEMORY_ATTACH), the
# memory was made present before; elsewhere the shim leaves these calls alone.

. same.sh

same 'mappings of iommufd' iommufd-cases
if grep -q ' process_vm_rw$' /proc/kallsyms; then
	takes register
else
	verdict 0 'register was taken over # SKIP no process_vm_readv here'
fi
finish
