/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A system call filter that this process was started under, and whether the
 * library can work behind it.
 */
#ifndef CLI_FILTER_TRIAL_H
#define CLI_FILTER_TRIAL_H

enum filter_verdict {
	FILTER_NONE,
	FILTER_HARMLESS, /* a job was tried behind it and lived */
	FILTER_HARMFUL,
};

/**
 * filter_judge - is there a filter, and does it let the library work?
 *
 * The trial takes a child process and some milliseconds, where there is a
 * filter; without one this is one system call.
 */
enum filter_verdict filter_judge(void);

#endif /* CLI_FILTER_TRIAL_H */
