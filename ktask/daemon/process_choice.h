/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which processes the administrator has chosen: by control group, by name, or all.
 */
#ifndef DAEMON_PROCESS_CHOICE_H
#define DAEMON_PROCESS_CHOICE_H

#include <stdbool.h>
#include <sys/types.h>

/* choice_add_group - a group and all below it; 0 or a positive errno */
int choice_add_group(const char *path);
/* choice_add_name - processes of that name, as in /proc/PID/comm */
int choice_add_name(const char *name);
void choice_add_all(void);

/* choice_is_empty - nothing was added */
bool choice_is_empty(void);

bool choice_has(pid_t pid);

#endif /* DAEMON_PROCESS_CHOICE_H */
