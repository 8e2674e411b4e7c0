/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operations: large single calls that keep a thread in the kernel, each done as a
 * ktask job.  One line in any C program:
 *
 *	error = ktask_populate(addr, len, 0);
 *
 * An operation returns 0 or a negative errno and leaves the memory as the plain
 * call would; errno is preserved.  The library chooses the threads, the chunk size
 * and the alignment; struct ktask_opts overrides that.  Conventions and glossary:
 * ktask/ktask.h.
 *
 * Ranges are in bytes.  If the plain call needs page alignment, so does the
 * operation: addr must be aligned, and len is rounded up to the page.  len 0 does
 * nothing and succeeds.  A range past the end of the address space or an unknown
 * flag is -EINVAL, and nothing is done.
 */
#ifndef KTASK_OPS_H
#define KTASK_OPS_H

#include <ktask/ktask.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ktask_populate() and ktask_lock(): make pages as a read would.  By default
 * ktask_populate() makes them as a write would, and ktask_lock() as mlock(2) does:
 * for writing where a write would copy the page. */
#define KTASK_POPULATE_READ 0x1u
/* ktask_populate(): touch pages instead of asking the kernel for them. */
#define KTASK_POPULATE_TOUCH 0x2u
/* ktask_discard(): MADV_FREE, the kernel takes the pages when memory is short. */
#define KTASK_DISCARD_FREE 0x1u
/* ktask_discard(): MADV_DONTNEED_LOCKED, locked memory as well (5.18). */
#define KTASK_DISCARD_LOCKED 0x2u
/* ktask_fill(): keep the destination out of the caches, or in them; by default
 * the library chooses what was faster when measured. */
#define KTASK_STORE_STREAM 0x1u
#define KTASK_STORE_CACHED 0x2u
/* ktask_warm(): read past the page cache (O_DIRECT). */
#define KTASK_FILE_DIRECT 0x1u

/* A length: to the end of the file. */
#define KTASK_TO_END UINT64_MAX

/**
 * struct ktask_opts - what an operation's caller may choose
 *
 * NULL means all defaults.  Set struct_size by KTASK_OPTS_INIT.
 */
struct ktask_opts {
	size_t struct_size;
	unsigned max_threads; /* 0: the engine decides */
	unsigned progress_ms; /* 0: every 100 ms */
	uint64_t deadline_ns; /* 0: none */
	ktask_progress_func progress_func; /* none */
	void *progress_arg;
	struct ktask_result *result; /* none; offsets are bytes from addr */
	unsigned flags; /* KTASK_FIXED: max_threads from start to end */
	unsigned chunk_us; /* 0: the engine decides */
	uint64_t reserved[3]; /* must be 0 */
};

#define KTASK_OPTS_INIT                                  \
	{                                                \
		.struct_size = sizeof(struct ktask_opts) \
	}

/**
 * struct ktask_file - a range of a file, for operations on files
 *
 * An operation takes any number of files as one job.  If a file fails, the others
 * are still done.  Its error is in @error, and the operation returns the error of the
 * first file that failed.  The thread that works on a path opens and closes it, so
 * there may be more paths than descriptors.
 *
 * If a path was found by walking directories, somebody may have replaced a part of it
 * by a symbolic link since.  In the last @nofollow bytes of the path no link is
 * followed (-ELOOP, -ENOTDIR).  They must begin with a name.
 *
 * KTASK_FILE_INIT sets @struct_size and selects the whole file.  No field may be
 * missing here.
 */
struct ktask_file {
	size_t struct_size; /* of an array the first one counts for all */
	const char *path; /* NULL: fd */
	int fd;
	unsigned nofollow; /* see above; 0 */
	uint64_t offset;
	uint64_t len; /* bytes; KTASK_TO_END */
	/* filled by the operation */
	int error; /* 0 or -errno */
	uint64_t fail_offset; /* with an error: in the file */
	uint64_t size; /* bytes that there were to be done */
};

#define KTASK_FILE_INIT                                             \
	{                                                           \
		.struct_size = sizeof(struct ktask_file), .fd = -1, \
		.len = KTASK_TO_END                                 \
	}

/**
 * struct ktask_op_args - the arguments of any operation
 *
 * Fields that an operation does not use must be 0.  Set @struct_size by
 * KTASK_OP_ARGS_INIT.
 */
struct ktask_op_args {
	size_t struct_size;
	void *addr;
	size_t len; /* bytes */
	unsigned flags; /* KTASK_<OPERATION>_* */
	struct ktask_file *files; /* warm: instead of addr */
	size_t nr_files;
	const void *src; /* fill: pattern, NULL zero */
	size_t src_len; /* fill: bytes of the pattern */
};

#define KTASK_OP_ARGS_INIT                                  \
	{                                                   \
		.struct_size = sizeof(struct ktask_op_args) \
	}

/**
 * ktask_populate - make all pages of a range present
 *
 * For private, shared, file-backed and hugetlb mappings.  Uses
 * MADV_POPULATE_READ/WRITE.  On kernels without these (before 5.14) it touches the
 * pages and recovers from SIGBUS.  A touch for writing keeps the contents.
 *
 * Return: 0; -ENOMEM: not mapped, or no memory; -EFAULT: SIGBUS or no permission
 * (also a file that ends before the range); -EHWPOISON; -EINVAL: unaligned, or
 * unknown flags.  After an error pages that were made stay, as with the plain call;
 * result.fail_offset is the first byte that failed.
 */
KTASK_API int ktask_populate(void *addr, size_t len, unsigned flags);

/**
 * ktask_fill - fill memory with zeroes or a repeated pattern
 * @pattern: NULL for zeroes; read only
 * @pattern_len: 1 to 4096 bytes; 0 when @pattern is NULL
 *
 * No alignment is required.  Byte i becomes pattern[i % pattern_len].
 * Faults are the program's own, as with memset(3).
 */
KTASK_API int ktask_fill(void *addr, size_t len, const void *pattern,
			 size_t pattern_len, unsigned flags);

/**
 * ktask_discard - give the pages of a range back
 *
 * MADV_DONTNEED, or MADV_FREE with KTASK_DISCARD_FREE (for private anonymous
 * memory; for other memory -EINVAL, as with the plain call).  Called before munmap()
 * of a large mapping, it frees the pages in parallel.
 */
KTASK_API int ktask_discard(void *addr, size_t len, unsigned flags);

/**
 * ktask_unmap - munmap() that frees the pages in parallel
 *
 * That pays for a range within one mapping of which much is present.  Other threads
 * of the program see the range disappear piece by piece.  Either all of it is
 * unmapped or nothing.  Cancelling and deadlines end only the parallel part: the
 * caller then unmaps the rest alone.
 *
 * Return: 0; -EINVAL; as munmap(2), with nothing unmapped.
 */
KTASK_API int ktask_unmap(void *addr, size_t len);

/**
 * ktask_lock - populate in parallel, then lock with one mlock()
 *
 * Return: as ktask_populate() and mlock(2).  If RLIMIT_MEMLOCK forbids it, -EPERM or
 * -ENOMEM before anything is populated.
 */
KTASK_API int ktask_lock(void *addr, size_t len, unsigned flags);

/**
 * ktask_unlock - munlock(2)
 *
 * The caller does it alone.  Two threads take 1.1 times as long, because the kernel
 * holds the lock of the address space meanwhile (1 GiB of 4 KiB pages: 28 ms alone,
 * 32 ms by two).
 *
 * Return: 0; -ENOMEM: part of the range is not mapped; what lies before that part is
 * unlocked, as by munlock(2).
 */
KTASK_API int ktask_unlock(void *addr, size_t len);

/**
 * ktask_warm - read a range of a file into the page cache
 * @len: bytes; what lies behind the end of the file is left out
 *
 * Has the effect of reading the range, without copying it if the file system permits
 * that.  Returns when all of it is in the page cache.  With KTASK_FILE_DIRECT it reads
 * past the page cache, which stays as it is: that warms what is below, the cache of a
 * host or of network storage.  For many files at once: ktask_op_run().
 *
 * Return: 0, or as open(2) and read(2).
 */
KTASK_API int ktask_warm(int fd, uint64_t offset, uint64_t len, unsigned flags);

/** An operation, opaque; one const descriptor each. */
struct ktask_op;

/** ktask_op_at - the operation with number @index, NULL behind the last */
KTASK_API const struct ktask_op *ktask_op_at(unsigned index);

/** ktask_op_find - the operation of that name, NULL if there is none */
KTASK_API const struct ktask_op *ktask_op_find(const char *name);

KTASK_API const char *ktask_op_name(const struct ktask_op *op);

/** ktask_op_summary - one line for people */
KTASK_API const char *ktask_op_summary(const struct ktask_op *op);

/** ktask_op_min_chunk - the least chunk in bytes; below that splitting did not pay
 * when it was measured */
KTASK_API size_t ktask_op_min_chunk(const struct ktask_op *op);

/** Which engine does the large jobs of an operation on this machine, and why. */
struct ktask_engine {
	size_t struct_size; /* KTASK_ENGINE_INIT */
	/* "user": this process's helpers; "kernel": those of /dev/ktask */
	const char *name; /* static */
	char why[120]; /* for people */
};

#define KTASK_ENGINE_INIT                                  \
	{                                                  \
		.struct_size = sizeof(struct ktask_engine) \
	}

/**
 * ktask_op_engine - which engine does the large jobs of an operation
 * @engine: filled
 *
 * This process does them, unless KTASK_ENGINE=kernel is set and /dev/ktask can be
 * opened.  The call opens the device to find out, and closes it again.
 *
 * Return: 0; -EOPNOTSUPP: only this process can do this operation; -EINVAL for NULL;
 * -EINVAL, -E2BIG for the size of @engine.
 */
KTASK_API int ktask_op_engine(const struct ktask_op *op,
			      struct ktask_engine *engine);

/**
 * ktask_op_run - any operation, with options
 * @opts: NULL for defaults
 *
 * Return: as the operation's own function.
 */
KTASK_API int ktask_op_run(const struct ktask_op *op,
			   const struct ktask_op_args *args,
			   const struct ktask_opts *opts);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_OPS_H */
