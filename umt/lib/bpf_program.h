/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program in the kernel that this process has loaded: for its own subscribers
 * (bpf.c) or for those of other processes (umtd).  program_unload() unloads it.  So does
 * the kernel when the last process that holds its descriptors ends.
 *
 * Owns the program's tables and which numbers of subscribers are taken.  Does
 * not own the counts: the kernel writes them.
 *
 * Locking: there is no lock here.  One caller at a time: in libumt, whose bpf.c asserts
 * that, the thread under subscriber_lock(); in umtd its only thread.  The kernel
 * and threads that add or remove themselves write what is mapped.
 */
#ifndef UMT_LIB_BPF_PROGRAM_H
#define UMT_LIB_BPF_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_LINKS_MAX 8

/* What a subscriber consists of; the caller owns the descriptors. */
struct program_subscriber {
	unsigned int index;
	uint64_t token[2];
	int table_fd;
	int ring_fd;
};

/* program_load - 0, or a negative errno and a line that says why */
int program_load(char *why, size_t size);
void program_unload(void);
bool program_loaded(void);

/* program_watch - attach it to all of the kernel's events that it handles, as after it was
 * loaded (@on), or only to the end of tasks; 0 or a negative errno */
int program_watch(bool on);

int program_nr_cores(void);

/* program_control_fd - the descriptor of the program that a thread runs to add itself; do
 * not close it */
int program_control_fd(void);

/*
 * program_links - the descriptors that keep the program attached; do not close them
 *
 * Return: how many of @fds were set, which has PROGRAM_LINKS_MAX entries.
 */
int program_links(int *fds);

/* program_link_id - the kernel's number of the link behind @fd; 0: it is none */
uint32_t program_link_id(int fd);

/*
 * program_maps - the kernel's ids of the maps that the control program holds
 *
 * Return: how many there are, of which @capacity at most were written to @maps; or
 * a negative errno.
 */
int program_maps(uint32_t *maps, unsigned int capacity);

/*
 * program_will_list - call before loading if program_list_maps() will be called
 */
void program_will_list(void);

struct umt_map;

/*
 * program_list_maps - all maps of the kernel, by ascending id
 *
 * Return: how many were written to @maps; @capacity: perhaps there are more; or a
 * negative errno.
 */
ssize_t program_list_maps(struct umt_map *maps, size_t capacity);

/* program_map_number - the kernel's id of the map behind @fd; 0: unknown */
uint32_t program_map_number(int fd);

/*
 * program_subscriber_open - open a subscriber with @flags and a ring of @ring_bytes
 *
 * Return: 0, -EUSERS, -ENOMEM or what the kernel said.
 */
int program_subscriber_open(struct program_subscriber *subscriber,
			    unsigned int flags, size_t ring_bytes);

/* The program drops the threads of the subscriber one by one, when each blocks next. */
void program_subscriber_close(unsigned int index);

/*
 * program_subscriber_lingers - does a thread still name this closed subscriber?
 */
bool program_subscriber_lingers(unsigned int index);

/*
 * program_attach - add thread @tid of any process to a subscriber
 *
 * The thread is counted from its next switch on.  This needs no check of rights: whoever
 * may load the program may see every process.
 *
 * Return: 0; -EEXIST: it has a subscriber already; -ESRCH; -EINVAL: it is not the first
 * thread of its process, and before Linux 6.9 there are no descriptors for other threads.
 */
int program_attach(const struct program_subscriber *subscriber, int tid,
		   bool traced);

/*
 * program_doorbell - the ring of one core of a subscriber
 * @fresh: make a new ring, which nobody else has held or will hold
 *
 * Otherwise the ring of an earlier subscriber with the same index is used again: removing
 * a ring from the kernel's table waits for all CPUs.
 *
 * Return: a descriptor that belongs to the caller, or a negative errno.
 */
int program_doorbell(unsigned int index, int cpu, bool fresh);

#endif /* UMT_LIB_BPF_PROGRAM_H */
