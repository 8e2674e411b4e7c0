/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes a large buffer present before it is used, and says what that cost.
 * Shows the one-line call, the call with options, and where an error was.
 *
 *	cc -o populate populate.c $(pkg-config --cflags --libs ktask)
 *	./populate [MEBIBYTES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ktask/ops.h>

#define MIB ((size_t)1 << 20)

static int show_progress(const struct ktask_progress *progress, void *arg)
{
	fprintf(stderr, "\r%3u %%",
		(unsigned)(100 * progress->units_done / progress->units_total));
	return 0; /* anything else would cancel */
}

static int populate_buffer(void *buffer, size_t size)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = buffer,
				      .len = size };
	int error;

	opts.progress_func = show_progress;
	opts.result = &result;
	error = ktask_op_run(ktask_op_find("populate"), &args, &opts);
	fputs("\r", stderr);
	if (error) {
		fprintf(stderr, "populate: at byte %zu: %s\n",
			result.fail_offset, strerror(-error));
		return error;
	}
	printf("%zu MiB by %u threads in %.1f ms, %.1f ms of CPU time\n",
	       size / MIB, result.threads, (double)result.wall_ns / 1e6,
	       (double)result.cpu_ns / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * MIB;
	void *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error;

	if (buffer == MAP_FAILED) {
		perror("populate: mapping memory");
		return 1;
	}
	if (populate_buffer(buffer, size))
		return 1;
	/* And back again, in parallel: then munmap() has little to do. */
	error = ktask_discard(buffer, size, 0);
	if (error)
		fprintf(stderr, "discard: %s\n", strerror(-error));
	munmap(buffer, size);
	return error != 0;
}
