/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program in the kernel, as this process has loaded it: for its own
 * subscribers (bpf.c) or for those of other processes (umtd).  It is taken away
 * by program_unload(), and by the kernel whenever the last process ends that
 * holds its descriptors.
 *
 * Owns the program's tables and which numbers of subscribers are taken.  Does
 * not own the counts: the kernel writes them.  One caller at a time.
 */
#ifndef UMT_LIB_BPF_PROGRAM_H
#define UMT_LIB_BPF_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_LINKS_MAX 8

/* What a subscriber is made of; the descriptors belong to who asked. */
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

/* program_watch - attach it to the kernel's events, as when it was loaded, or take
 * it from them; 0 or a negative errno */
int program_watch(bool on);

int program_nr_cores(void);

/* program_control_fd - what a thread runs to add itself; stays ours */
int program_control_fd(void);

/*
 * program_links - the descriptors that keep the program attached; stay ours
 *
 * Return: how many of @fds were set, which has PROGRAM_LINKS_MAX entries.
 */
int program_links(int *fds);

/*
 * program_maps - the kernel's numbers of the maps that what threads run holds
 *
 * Return: how many there are, of which @capacity at most were written to @maps; or
 * a negative errno.
 */
int program_maps(uint32_t *maps, unsigned int capacity);

/*
 * program_will_list - before it is loaded: program_list_maps() will be called
 */
void program_will_list(void);

struct umt_map;

/*
 * program_list_maps - all maps of the kernel, by rising number
 *
 * Return: how many were written to @maps; @capacity: perhaps there are more; or a
 * negative errno.
 */
ssize_t program_list_maps(struct umt_map *maps, size_t capacity);

/* program_map_number - that of the map behind @fd; 0: unknown */
uint32_t program_map_number(int fd);

/*
 * program_subscriber_open - a subscriber with @flags; @ring_bytes: for its events
 *
 * Return: 0, -EUSERS, -ENOMEM or what the kernel said.
 */
int program_subscriber_open(struct program_subscriber *subscriber,
			    unsigned int flags, size_t ring_bytes);

/* Its threads are dropped one by one, as each blocks next. */
void program_subscriber_close(unsigned int index);

/*
 * program_subscriber_lingers - does a thread still name this closed subscriber?
 */
bool program_subscriber_lingers(unsigned int index);

/*
 * program_attach - any thread becomes one of a subscriber's, whoever's it is
 *
 * It is counted from its next switch on.  Who loaded the program may see every
 * process anyway.
 *
 * Return: 0; -EEXIST: it is some subscriber's already; -ESRCH; -EINVAL: not the
 * first thread of its process, and no descriptor stands for others before Linux
 * 6.9.
 */
int program_attach(const struct program_subscriber *subscriber, int tid,
		   bool traced);

/*
 * program_doorbell - a ring of its own for a core of a subscriber
 * @fresh: nobody else, earlier or later, may hold the same
 *
 * Otherwise the ring of an earlier subscriber of the number serves again, for
 * taking one out of the kernel's table waits for all CPUs each time.
 *
 * Return: a descriptor that belongs to the caller, or a negative errno.
 */
int program_doorbell(unsigned int index, int cpu, bool fresh);

#endif /* UMT_LIB_BPF_PROGRAM_H */
