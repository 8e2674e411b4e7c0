/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See children.h. */
#include <signal.h>

#include "children.h"

static struct sigaction former;

void children_heed(void)
{
	struct sigaction heeded = { .sa_handler = SIG_DFL };

	sigaction(SIGCHLD, &heeded, &former);
}

void children_as_before(void)
{
	sigaction(SIGCHLD, &former, NULL);
}
