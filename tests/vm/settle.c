/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's own code is changed before the tests begin, not while they run.
 *
 * What is seldom needed the kernel switches on by writing into its code ("static
 * keys"), an int3 first: when processes are frozen, with the first group that has
 * a CPU quota, with the first cpuset.  QEMU before 8.1, where it runs CPUs in
 * parallel, may keep a translation of that int3, execute it from then on, and the
 * guest dies of "Oops: int3" in code that has long been right again ("accel/tcg:
 * Always lock pages before translation" mends it).  A CPU must come by just then,
 * so it takes load: three of three guests of six CPUs died so without any module,
 * one at the first quota, one after a hundred times of freezing; with CPUs that
 * take turns (thread=single) one outlived 373 of each.
 *
 * So a group that stays, and that nobody is in, holds each switch.  This runs
 * before PID 1 has said anything, and before there is load: a boot that dies of it
 * all the same is tried again.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include "guest.h"

#define V1 "/frozen"
#define V2 "/sys/fs/cgroup"
#define STAYS "/stays"

/* Where the kernel has none of it the tests neither use nor change it. */
void settle_code(void)
{
	mkdir(V1, 0755);
	mount("cgroup", V1, "cgroup", 0, "freezer");
	mkdir(V1 STAYS, 0755);
	write_file(V1 STAYS "/freezer.state", "FROZEN");
	mount("cgroup2", V2, "cgroup2", 0, NULL);
	write_file(V2 "/cgroup.subtree_control", "+memory +cpu +cpuset");
	mkdir(V2 STAYS, 0755);
	write_file(V2 STAYS "/cpu.max", "50000 100000");
	umount(V2);
	umount(V1);
}
