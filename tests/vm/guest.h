/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of PID 1 share.
 */
#ifndef KTASK_VM_GUEST_H
#define KTASK_VM_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PATIENCE_MS 30000

/*
 * say - the verdict on one test
 * @format: with !@ok why it failed, with @ok why it is skipped; or NULL
 */
void say(bool ok, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* write_file - 0 or a positive errno */
int write_file(const char *path, const char *text);

/* read_file - what there is, at most @size - 1 bytes, as a string */
void read_file(const char *path, char *text, size_t size);

void sleep_ms(long ms);

/* status_of - the exit status of a child, 1000 if a signal ended it */
int status_of(pid_t pid);

/* test_device - /dev/ktask */
void test_device(void);

#endif /* KTASK_VM_GUEST_H */
