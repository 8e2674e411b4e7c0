/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libbpf has its descriptors from bpf(2), and libumt those that tell of a thread from
 * perf_event_open(2), which thread sanitizer does not see: who uses one seems to use
 * what another thread had opened by that number before.
 */
#include "ktest.h"

#if KTEST_TSAN
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:libbpf.so\n"
	       "race:umt_open\nrace:umt_close\nrace:wait_for_events\n"
	       "race:watch_thread\n";
}
#endif
