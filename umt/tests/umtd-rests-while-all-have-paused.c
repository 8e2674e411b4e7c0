/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * While all subscribers of umtd have paused its program is attached to nothing; when
 * one goes on, or another process opens one, it is.
 */
#include "support/umtd.h"
#include "bpf_links.h"

static struct umtd umtd;

/* Also of umtd's, by root. */
static unsigned nr_links_of(pid_t pid)
{
	char path[32], target[64];
	struct dirent *entry;
	unsigned nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		memset(target, 0, sizeof(target));
		if (readlinkat(dirfd(dir), entry->d_name, target,
			       sizeof(target) - 1) > 0)
			nr += !!strstr(target, "bpf_link") ||
			      !!strstr(target, "bpf-link");
	}
	if (dir)
		closedir(dir);
	return nr;
}

static bool is_attached(void)
{
	ktest_check(!nr_bpf_links() == !nr_links_of(umtd.pid));
	return nr_bpf_links();
}

static int pauses(void *unused)
{
	struct umt *one = subscribe_by_umtd(0), *other = subscribe_by_umtd(0);
	struct umt *third;

	ktest_check(one && other && is_attached());
	ktest_check(umt_pause(one) == 0 && umt_pause(one) == 0);
	ktest_check(is_attached());
	ktest_check(umt_pause(other) == 0);
	ktest_check(!is_attached());
	third = subscribe_by_umtd(0);
	ktest_check(third && is_attached());
	umt_close(third);
	ktest_check(!is_attached());
	ktest_check(umt_resume(other) == 0);
	ktest_check(is_attached());
	umt_close(other);
	ktest_check(!is_attached());
	ktest_check(umt_resume(one) == 0);
	ktest_check(is_attached());
	umt_close(one);
	return 0;
}

static int counts_again(void *unused)
{
	struct umt *umt;

	become_somebody(SOMEBODY);
	umt = subscribe_by_umtd(0);
	ktest_check(umt != NULL);
	for (int round = 0; round < 5; round++) {
		uint64_t before;

		ktest_check(umt_pause(umt) == 0);
		ktest_check(umt_resume(umt) == 0);
		ktest_check(umt_thread_add(umt) == 0);
		before = sums_of(umt).sleeps;
		for (int i = 0; i < 20; i++)
			nap_us(100);
		ktest_check(holds_soon(sums_of(umt).sleeps > before));
		ktest_check(umt_thread_remove(umt) == 0);
		ktest_check(holds_soon(ready_of(umt) == 0));
	}
	umt_close(umt);
	return 0;
}

static void all_may_pause(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(pauses, NULL), 0);
	assert_int_equal(as_somebody(counts_again, NULL), 0);
	umtd_end(&umtd);
}

static int pauses_beside_others(void *unused)
{
	struct umt *umt = subscribe_by_umtd(0);

	ktest_check(umt && umt_pause(umt) == 0);
	ktest_check(!nr_links_of(umtd.pid));
	ktest_check(ktest_in_child_for(is_served, NULL, 60) == 0);
	/* That one has ended. */
	ktest_check(holds_soon(!nr_links_of(umtd.pid)));
	ktest_check(umt_resume(umt) == 0 && is_attached());
	umt_close(umt);
	return 0;
}

static void others_are_served_meanwhile(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(pauses_beside_others, NULL), 0);
	umtd_end(&umtd);
}

static int outlives_umtd(void *unused)
{
	struct umt *umt = subscribe_by_umtd(0);

	ktest_check(umt && umt_pause(umt) == 0);
	kill(umtd.pid, SIGKILL);
	ktest_check(umt_resume(umt) < 0);
	ktest_check(umt_resume(umt) < 0);
	umt_close(umt);
	return 0;
}

static void a_killed_umtd_is_told_of(void **state)
{
	umtd_begin(&umtd);
	assert_int_equal(as_somebody(outlives_umtd, NULL), 0);
	umtd_end(&umtd);
}

KTEST_MAIN(KTEST(all_may_pause), KTEST(others_are_served_meanwhile),
	   KTEST(a_killed_umtd_is_told_of))
