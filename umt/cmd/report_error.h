/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the command says when something goes wrong: one line on standard
 * error, `umt: <what it was doing>: <why>`.  Each function returns the exit
 * status that belongs to its message.
 */
#ifndef UMT_CMD_REPORT_ERROR_H
#define UMT_CMD_REPORT_ERROR_H

/* @format tells the doing, @error (an errno) the why; 1 */
int say_error(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The whole line is the caller's; 1 */
#define say_fail(...) say_error(0, __VA_ARGS__)

/* Wrong usage; 2 */
int say_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What getopt_long(3) refused, for option strings with ':' in front; 2 */
int say_option(char **argv, int option);

#endif /* UMT_CMD_REPORT_ERROR_H */
