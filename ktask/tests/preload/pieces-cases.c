/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Maps memory that another thread may make present by small system calls only: a filter
 * refuses larger ones.  Prints how much of it is present when that is all of it, or after
 * a while.
 */
#include <sched.h>

#include "probe.h"
#include "refuse.h"

#define LARGE_BYTES ((size_t)64 << 20)
#define MOST_BYTES ((size_t)1 << 20)
#define POPULATE_WRITE 23
#define POLL_US 10000
#define POLLS_MAX 3000

/* On little-endian machines. */
static void refuse_large_pieces(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_WRITE, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, MOST_BYTES, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	must_hold(refuse_by(steps, sizeof(steps) / sizeof(steps[0]),
			    REFUSE_PRCTL),
		  "filter");
}

static size_t count_present(void *base)
{
	static unsigned char in[LARGE_BYTES / PAGE_BYTES];
	size_t present = 0;

	must_hold(!mincore(base, LARGE_BYTES, in), "mincore");
	for (size_t i = 0; i < sizeof(in); i++)
		present += in[i] & 1;
	return present * PAGE_BYTES;
}

int main(void)
{
	size_t present = 0;
	char *base;

	refuse_large_pieces();
	base = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must_hold(base != MAP_FAILED, "mmap");
	for (int i = 0; i < POLLS_MAX && present < LARGE_BYTES; i++) {
		usleep(POLL_US);
		present = count_present(base);
	}
	printf("%zu MiB\n", present >> 20);
	return munmap(base, LARGE_BYTES) != 0;
}
