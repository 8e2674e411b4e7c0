/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Text that others have written (names of programs, files and groups), for a terminal or
 * a line of a report.  Changed in place, nothing is allocated: a process may use it at its
 * end.
 */
#ifndef KTASK_UTIL_SHOWN_TEXT_H
#define KTASK_UTIL_SHOWN_TEXT_H

/** text_repair - replace by '?' each byte that is no part of a character of UTF-8 */
void text_repair(char *text);

/**
 * text_show - replace by '?' each byte that is no part of a character, or is part of a
 * control character
 */
void text_show(char *text);

#endif /* KTASK_UTIL_SHOWN_TEXT_H */
