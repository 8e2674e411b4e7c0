/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A terminal that is redrawn as a whole and read a key at a time.
 */
#ifndef KTASK_CLI_SCREEN_H
#define KTASK_CLI_SCREEN_H

#include <stdbool.h>

/* Behind each line: the rest of the former one is removed. */
#define SCREEN_EOL "\033[K\n"

/** screen_possible - is @fd a terminal that can move its cursor? */
bool screen_possible(int fd);

/** screen_begin - another page, which screen_end() takes away again */
void screen_begin(void);
void screen_end(void);

/** screen_home - draw over what is there; screen_done - remove the rest */
void screen_home(void);
void screen_done(void);

void screen_size(int fd, unsigned *rows, unsigned *columns);

/**
 * screen_key - wait at most @ms for a key
 *
 * Return: the key; 0: none, also when a signal came.
 */
int screen_key(unsigned ms);

#endif /* KTASK_CLI_SCREEN_H */
