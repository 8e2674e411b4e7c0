/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Children that end: somebody who ignores theirs may have started us, and then
 * the kernel would keep nothing to wait for.
 */
#ifndef KTASK_CLI_CHILDREN_H
#define KTASK_CLI_CHILDREN_H

/** children_heed - from now on they can be waited for; once, at the start */
void children_heed(void);

/** children_as_before - what becomes another program finds it as we did */
void children_as_before(void);

#endif /* KTASK_CLI_CHILDREN_H */
