#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A program that calls ibv_reg_mr() of the real library, on a device of software: what
# comes of each call is the same, and its memory was made present before.

. same.sh

same 'regions of an RDMA device' regions-cases
takes register
grep '^ktask: register' /tmp/report | sed 's/^/# /'
finish
