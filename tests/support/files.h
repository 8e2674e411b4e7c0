/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files with known contents in a directory of their own, and runs of operations
 * on them.  Needs ktest.h before it.
 */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <ktask/ops.h>

#include "pattern.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static char files_directory[64];

static inline int files_begin(void **state)
{
	/* Not in memory: what is read there is there already. */
	snprintf(files_directory, sizeof(files_directory),
		 "/var/tmp/ktask.XXXXXX");
	return mkdtemp(files_directory) ? 0 : -1;
}

static inline int files_remove_one(const char *path, const struct stat *st,
				   int type, struct FTW *ftw)
{
	return remove(path);
}

static inline int files_end(void **state)
{
	return nftw(files_directory, files_remove_one, 16,
		    FTW_DEPTH | FTW_PHYS);
}

/* A path in the directory; of the last 16 calls. */
static inline char *files_path(const char *name)
{
	static char paths[16][128];
	static unsigned turn;
	char *path = paths[turn++ % 16];

	snprintf(path, sizeof(paths[0]), "%s/%s", files_directory, name);
	return path;
}

/* Where in the pattern the contents of a seed begin. */
static inline size_t files_phase(size_t pos, unsigned seed)
{
	return pos + seed * 7919ul;
}

/* A file of @len bytes; returns its path. */
static inline char *files_make(const char *name, size_t len, unsigned seed)
{
	static unsigned char buf[1 << 16];
	char *path = files_path(name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	for (size_t done = 0; done < len;) {
		size_t part =
			len - done < sizeof(buf) ? len - done : sizeof(buf);

		pattern_fill(buf, part, files_phase(done, seed));
		assert_int_equal(fwrite(buf, 1, part, file), part);
		done += part;
	}
	assert_int_equal(fclose(file), 0);
	return path;
}

/* [start, start + len) of the file is that of files_make() from @from on. */
static inline void files_check(const char *path, size_t start, size_t len,
			       size_t from, unsigned seed)
{
	static unsigned char buf[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t done = 0; done < len;) {
		ssize_t got = pread(fd, buf,
				    len - done < sizeof(buf) ? len - done
							     : sizeof(buf),
				    (off_t)(start + done));

		assert_true(got > 0);
		if (!pattern_same(buf, (size_t)got,
				  files_phase(from + done, seed)))
			fail_msg("%s is wrong behind byte %zu", path,
				 start + done);
		done += (size_t)got;
	}
	close(fd);
}

static inline size_t files_size(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

static inline int files_run(const char *name, struct ktask_file *files,
			    size_t nr, unsigned flags,
			    struct ktask_result *result)
{
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .files = files,
				      .nr_files = nr,
				      .flags = flags };
	struct ktask_opts opts = KTASK_OPTS_INIT;

	opts.result = result;
	return ktask_op_run(ktask_op_find(name), &args, &opts);
}

#endif /* TEST_FILES_H */
