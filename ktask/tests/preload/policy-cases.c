/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that gets policies and is moved between nodes by mbind, move_pages and
 * migrate_pages: what each call returned, on which node the pages are then, the
 * policies, the mappings and what is in them.  The same text must come out with
 * and without the shim; of interest on a machine with several nodes.  With an argument:
 * memory that is touched under a policy.
 *
 * Runs on the CPUs of one node, which is the local one so for whoever asks.
 */
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "probe.h"

#define LEN ((size_t)2 << 20)
#define NR_PAGES (LEN / PAGE_BYTES)
#define RW (PROT_READ | PROT_WRITE)
#define WORD_BITS 64
#define NR(array) (sizeof(array) / sizeof(*(array)))

/* The nodes with memory; all are the same where there is one. */
static unsigned here, there;

static void *pages[NR_PAGES];
static int nodes[NR_PAGES], status[NR_PAGES];

static unsigned long make_bit(unsigned node)
{
	return 1ul << node;
}

static long set_policy_of(char *base, size_t len, int mode, unsigned long mask,
			  unsigned flags)
{
	return syscall(SYS_mbind, base, len, mode, &mask, WORD_BITS, flags);
}

static void read_list(const char *path, cpu_set_t *set)
{
	FILE *file = fopen(path, "r");
	int first, last;

	CPU_ZERO(set);
	while (file && fscanf(file, "%d", &first) == 1) {
		last = first;
		if (fscanf(file, "-%d", &last) < 0)
			last = first;
		for (; first <= last; first++)
			CPU_SET(first, set);
		if (fgetc(file) != ',')
			break;
	}
	if (file)
		fclose(file);
}

/* The first node with CPUs and memory, and the last with memory. */
static void find_nodes(void)
{
	cpu_set_t memory, cpus, chosen;
	char path[80];
	int found = 0;

	CPU_ZERO(&chosen);
	read_list("/sys/devices/system/node/has_memory", &memory);
	for (unsigned node = 0; node < WORD_BITS; node++) {
		if (!CPU_ISSET(node, &memory))
			continue;
		there = node;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%u/cpulist", node);
		read_list(path, &cpus);
		if (found || !CPU_COUNT(&cpus))
			continue;
		here = node;
		chosen = cpus;
		found = 1;
	}
	if (found)
		sched_setaffinity(0, sizeof(chosen), &chosen);
}

/* All pages of the range are there, on that node, and no policy is left. */
static void fill_on_node(char *base, size_t len, unsigned node)
{
	must_hold(!set_policy_of(base, len, MPOL_BIND, make_bit(node), 0),
		  "mbind");
	for (size_t pos = 0; pos < len; pos += PAGE_BYTES)
		*(uint64_t *)(base + pos) = pos * 2654435761u + 1;
	must_hold(!syscall(SYS_mbind, base, len, MPOL_DEFAULT, NULL, 0ul, 0),
		  "mbind");
}

static char *map_on_node(int flags, unsigned node)
{
	char *space = guarded_space(LEN);
	char *base =
		mmap(space, LEN, RW, flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	must_hold(base == space, "mmap");
	fill_on_node(base, LEN, node);
	return base;
}

static void print_nodes(char *base)
{
	size_t nr_here = 0, nr_there = 0, nr_none = 0;

	for (size_t i = 0; i < NR_PAGES; i++)
		pages[i] = base + i * PAGE_BYTES;
	must_hold(!syscall(SYS_move_pages, 0, NR_PAGES, pages, NULL, status, 0),
		  "where pages are");
	for (size_t i = 0; i < NR_PAGES; i++) {
		nr_here += status[i] == (int)here;
		nr_there += status[i] == (int)there;
		nr_none += status[i] < 0;
	}
	printf(" here=%zu there=%zu none=%zu", nr_here, nr_there, nr_none);
}

static void print_policy(const char *at)
{
	unsigned long mask[16] = { 0 };
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, mask, sizeof(mask) * 8, at,
		    MPOL_F_ADDR))
		printf(" policy=%s", strerrorname_np(errno));
	else
		printf(" policy=%d:%lx", mode, mask[0]);
}

/* Of pages that are there: looking at others would make them. */
static void print_words(const char *base)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < NR_PAGES; i++)
		if (status[i] >= 0)
			sum = sum * 31 +
			      *(const uint64_t *)(base + i * PAGE_BYTES);
	printf(" sum=%016lx", sum);
}

static void print_all(const char *name, long rc, char *base)
{
	print_outcome(name, rc, errno);
	print_nodes(base);
	print_policy(base);
	print_policy(base + LEN / 2);
	print_words(base);
	print_account(base, LEN);
	putchar('\n');
	unmap_space(base, LEN);
}

/* Every mode, with every flag, to each of several sets of nodes. */
static void bind_all(void)
{
	const unsigned long masks[] = { 0, make_bit(here), make_bit(there),
					make_bit(here) | make_bit(there),
					make_bit(62) };
	static const unsigned flags[] = { 0, MPOL_MF_MOVE, MPOL_MF_STRICT,
					  MPOL_MF_MOVE | MPOL_MF_STRICT, 8 };

	for (int mode = 0; mode < 6; mode++) {
		for (size_t i = 0; i < NR(masks) * NR(flags); i++) {
			unsigned long mask = masks[i / NR(flags)];
			unsigned flag = flags[i % NR(flags)];
			char *base = map_on_node(MAP_PRIVATE, there), name[64];
			long rc;

			snprintf(name, sizeof(name), "mbind %d to %lx by %x",
				 mode, mask, flag);
			errno = ERRNO_MARK;
			rc = set_policy_of(base, LEN, mode, mask, flag);
			print_all(name, rc, base);
		}
	}
}

/* What the shim takes: bound to one node, and moved. */
static long bind_and_move(char *base, size_t len, unsigned node)
{
	errno = ERRNO_MARK;
	return set_policy_of(base, len, MPOL_BIND, make_bit(node),
			     MPOL_MF_MOVE);
}

static void bind_memory_of_all_kinds(void)
{
	char *base = map_on_node(MAP_SHARED, there);

	print_all("shared memory", bind_and_move(base, LEN, here), base);
	base = map_on_node(MAP_PRIVATE, here);
	print_all("where it is", bind_and_move(base, LEN, here), base);
	base = map_on_node(MAP_PRIVATE, here);
	madvise(base, LEN / 4, MADV_DONTNEED);
	print_all("pages missing", bind_and_move(base, LEN, there), base);
	base = map_on_node(MAP_PRIVATE, here);
	munmap(base + LEN / 2, PAGE_BYTES);
	print_all("a hole", bind_and_move(base, LEN, there), base);
	base = map_on_node(MAP_PRIVATE, here);
	mprotect(base, LEN / 2, PROT_READ);
	print_all("read only in part", bind_and_move(base, LEN, there), base);
	base = map_on_node(MAP_PRIVATE, here);
	mprotect(base, LEN, PROT_NONE);
	/* Not to be looked at. */
	printf("no access: rc=%ld", bind_and_move(base, LEN, there));
	print_nodes(base);
	putchar('\n');
	unmap_space(base, LEN);
	base = map_on_node(MAP_PRIVATE, here);
	mlock(base, LEN);
	print_all("locked", bind_and_move(base, LEN, there), base);
	base = map_on_node(MAP_PRIVATE, here);
	print_all("odd length", bind_and_move(base, LEN - 5000, there), base);
	base = map_on_node(MAP_PRIVATE, here);
	print_all("odd start", bind_and_move(base + 5, LEN - 4096, there),
		  base);
	base = map_on_node(MAP_PRIVATE, here);
	print_all("no such node", bind_and_move(base, LEN, 62), base);
}

/* Pages that a child has as well stay where they are. */
static void bind_what_a_child_has(void)
{
	char *base = map_on_node(MAP_PRIVATE, here);
	int ends[2];
	pid_t pid;
	long rc;

	must_hold(!pipe(ends), "pipe");
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit((int)read(ends[0], ends, 1));
	}
	rc = bind_and_move(base, LEN, there);
	close(ends[1]);
	close(ends[0]);
	must_hold(waitpid(pid, NULL, 0) == pid, "waitpid");
	print_all("a child's as well", rc, base);
}

static void move_mapping(const char *name, size_t nr, unsigned to,
			 unsigned flags, int exception)
{
	char *base = map_on_node(MAP_PRIVATE, here);
	uint64_t sum = 14695981039346656037u;
	long rc;

	for (size_t i = 0; i < NR_PAGES; i++) {
		pages[i] = base + i * PAGE_BYTES;
		nodes[i] = (int)to;
		status[i] = 99;
	}
	if (exception > 0)
		nodes[NR_PAGES / 2] = exception;
	if (exception == -1)
		pages[NR_PAGES / 2] = (void *)8;
	if (exception == -2)
		madvise(base, LEN / 2, MADV_DONTNEED);
	errno = ERRNO_MARK;
	rc = syscall(SYS_move_pages, 0, nr, pages, nodes, status, flags);
	for (size_t i = 0; i < NR_PAGES; i++)
		sum = (sum ^ (unsigned)status[i]) * 1099511628211u;
	printf("status=%016lx ", sum);
	print_all(name, rc, base);
}

static void move_pages_everywhere(void)
{
	move_mapping("move_pages", NR_PAGES, there, MPOL_MF_MOVE, 0);
	move_mapping("move_pages, where they are", NR_PAGES, here, MPOL_MF_MOVE,
		     0);
	move_mapping("move_pages, all that use them", NR_PAGES, there,
		     MPOL_MF_MOVE_ALL, 0);
	move_mapping("move_pages, no flag", NR_PAGES, there, 0, 0);
	move_mapping("move_pages, unknown flag", NR_PAGES, there, 8, 0);
	move_mapping("move_pages, none", 0, there, MPOL_MF_MOVE, 0);
	move_mapping("move_pages, one to nowhere", NR_PAGES, there,
		     MPOL_MF_MOVE, 62);
	move_mapping("move_pages, one of nobody", NR_PAGES, there, MPOL_MF_MOVE,
		     -1);
	move_mapping("move_pages, half missing", NR_PAGES, there, MPOL_MF_MOVE,
		     -2);
}

/* Pages of the program and its libraries stay or go: how many is not told. */
static void migrate_everything(unsigned from, unsigned to)
{
	unsigned long old = make_bit(from), new = make_bit(to);
	char *base = map_on_node(MAP_PRIVATE, from), name[64];
	long rc;

	snprintf(name, sizeof(name), "migrate_pages %s",
		 from == to ? "to the same" : "to another");
	errno = ERRNO_MARK;
	rc = syscall(SYS_migrate_pages, 0, WORD_BITS, &old, &new);
	print_all(name, rc < 0 ? rc : 0, base);
	errno = ERRNO_MARK;
	new = make_bit(62);
	rc = syscall(SYS_migrate_pages, 0, WORD_BITS, &old, &new);
	print_outcome("migrate_pages to nowhere", rc, errno);
	putchar('\n');
}

/* What is made is made where the policy of the thread says. */
static void populate_by_policy(const char *name, int mode, unsigned long mask)
{
	char *space = guarded_space(LEN), *base;

	must_hold(!syscall(SYS_set_mempolicy, mode, mode ? &mask : NULL,
			   mode ? WORD_BITS : 0),
		  "set_mempolicy");
	errno = ERRNO_MARK;
	base = mmap(space, LEN, RW,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1,
		    0);
	print_all(name, base == space ? 0 : -1, space);
	must_hold(!syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0),
		  "set_mempolicy");
}

#define SPAN (16 * LEN)

/* A mapping that is there before the policy is touched in order, with time to make pages
 * ahead: each page is where the policy says, and there are no others. */
static void touch_in_turn(void)
{
	char *space = guarded_space(SPAN);
	unsigned long mask = make_bit(here) | make_bit(there);

	must_hold(mmap(space, SPAN, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0) == space,
		  "mmap");
	usleep(20000);
	must_hold(
		!syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &mask, WORD_BITS),
		"set_mempolicy");
	for (size_t pos = 0; pos < SPAN / 2; pos += PAGE_BYTES) {
		*(uint64_t *)(space + pos) = pos * 2654435761u + 1;
		if (pos % LEN == LEN - PAGE_BYTES)
			usleep(10000);
	}
	usleep(50000);
	for (size_t pos = 0; pos < SPAN; pos += LEN) {
		printf("part %zu:", pos / LEN);
		print_nodes(space + pos);
		putchar('\n');
	}
}

/* policy-cases [touched] */
int main(int argc, char **argv)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	find_nodes();
	if (argc > 1) {
		touch_in_turn();
		return 0;
	}
	bind_all();
	bind_memory_of_all_kinds();
	bind_what_a_child_has();
	move_pages_everywhere();
	migrate_everything(here, there);
	migrate_everything(here, here);
	populate_by_policy("populated", MPOL_DEFAULT, 0);
	populate_by_policy("populated there", MPOL_BIND, make_bit(there));
	populate_by_policy("populated in turn", MPOL_INTERLEAVE,
			   make_bit(here) | make_bit(there));
	return 0;
}
