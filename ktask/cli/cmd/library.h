/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The shared library that `ktask run` preloads: where it lies.
 */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stdbool.h>

/**
 * library_find - find the preload library
 *
 * It lies beside the command in a build tree, else in the library directory.
 *
 * Return: its path, which the caller frees; NULL after a message.
 */
char *library_find(void);

/** library_is_loaded - it is preloaded into this very process */
bool library_is_loaded(void);

#endif /* CLI_LIBRARY_H */
