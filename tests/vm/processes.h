/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The processes of a guest, threads of the kernel among them.
 */
#ifndef TESTS_VM_PROCESSES_H
#define TESTS_VM_PROCESSES_H

/* sum_over_processes - of what @value_of says of each; @pid: its directory in /proc */
long sum_over_processes(long (*value_of)(const char *pid));

#endif /* TESTS_VM_PROCESSES_H */
