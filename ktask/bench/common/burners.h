/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Processes that keep CPUs busy beside what is measured.  They end with the
 * process that started them, whatever ends it.
 */
#ifndef BENCH_BURNERS_H
#define BENCH_BURNERS_H

#include <stdbool.h>
#include <sys/types.h>

#define BURNERS_MAX 64

struct burners {
	unsigned nr; /* at most BURNERS_MAX */
	int nice;
	bool idle; /* SCHED_IDLE, whatever the nice value */
	pid_t pids[BURNERS_MAX];
};

void burners_start(struct burners *burners);
void burners_signal(const struct burners *burners, int signal);
void burners_stop(struct burners *burners);

#endif /* BENCH_BURNERS_H */
