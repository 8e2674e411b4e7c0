/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The least that engine/host.h asks for. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

struct kt_host_item {
	int unused;
};

#endif /* KTASK_HOST_H */
