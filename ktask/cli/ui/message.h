/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the command says when something goes wrong: one line on standard
 * error, `ktask: <what it was doing>: <why>`.  Each function returns the exit
 * status that belongs to its message, so that a caller ends with it.
 */
#ifndef KTASK_CLI_MESSAGE_H
#define KTASK_CLI_MESSAGE_H

/** say_error - @format tells the doing, @error (an errno) the why; returns 1 */
int say_error(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** say_fail - the whole line is the caller's; returns 1 */
#define say_fail(...) say_error(0, __VA_ARGS__)

/** say_usage - wrong usage of @command (NULL: of ktask); returns 2 */
int say_usage(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * say_option - complain about what getopt_long(3) refused; returns 2
 * @option: '?' or ':', as getopt_long() returned it
 *
 * For option strings that begin with ':' (after any '+').
 */
int say_option(const char *command, char **argv, int option);

#endif /* KTASK_CLI_MESSAGE_H */
