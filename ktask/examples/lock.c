/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Keeps a cache in memory: maps a file, or as much memory as may be locked,
 * and locks it, populating it with several threads.
 *
 *	cc -o lock lock.c $(pkg-config --cflags --libs ktask)
 *	./lock [FILE]
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ktask/ops.h>

#define MIB ((size_t)1 << 20)
#define MOST (64 * MIB)

struct cache {
	void *at;
	size_t size;
};

static int map_file(struct cache *cache, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return 1;
	}
	cache->size = (size_t)st.st_size;
	cache->at = mmap(NULL, cache->size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return 0;
}

/* Half of what the limit allows: other parts of a program lock memory too. */
static int map_memory(struct cache *cache)
{
	struct rlimit limit;

	cache->size = MOST;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur / 2 < MOST)
		cache->size = (size_t)limit.rlim_cur / 2;
	cache->at = mmap(NULL, cache->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct cache cache;
	int error = argc > 1 ? map_file(&cache, argv[1]) : map_memory(&cache);

	if (error)
		return 1;
	if (cache.at == MAP_FAILED) {
		perror("lock: mapping the cache");
		return 1;
	}
	error = ktask_lock(cache.at, cache.size, 0);
	if (error) {
		/* -EPERM and -ENOMEM: see RLIMIT_MEMLOCK in mlock(2). */
		fprintf(stderr, "lock: %zu KiB: %s\n", cache.size / 1024,
			strerror(-error));
		return 1;
	}
	printf("%zu KiB locked\n", cache.size / 1024);
	munmap(cache.at, cache.size);
	return 0;
}
