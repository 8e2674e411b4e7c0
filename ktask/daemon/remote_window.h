/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes a window by one job of the library, on which only helpers work.  The watcher
 * begins the job and is woken when it ends.
 */
#ifndef DAEMON_REMOTE_WINDOW_H
#define DAEMON_REMOTE_WINDOW_H

#include "daemon/remote_mapping.h"

/* remote_window_begin - begin to make mapping->window; false: it cannot be now */
bool remote_window_begin(struct remote_mapping *mapping);

/* remote_window_end - is it made?  @cancel: let it end now */
bool remote_window_end(struct remote_mapping *mapping, bool cancel);

/*
 * remote_window_init - begin with helpers: making the first takes milliseconds
 *
 * Return: 0 or a positive errno.
 */
int remote_window_init(void);

/* A descriptor that can be read from once a window is made. */
int remote_window_events(void);
/* Read from it. */
void remote_window_clear_events(void);

/* remote_window_may_begin - a helper works, or could have a CPU: what the daemon spends on
 * finding windows is not in vain */
bool remote_window_may_begin(void);

#endif /* DAEMON_REMOTE_WINDOW_H */
