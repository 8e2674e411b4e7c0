/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Registering memory with a device: pinning it, and telling the device where it
 * is, so that the device reads and writes it by itself.
 *
 *	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
 *	struct ktask_registration *registration;
 *
 *	ctl.register_func = pin;
 *	ctl.unregister_func = unpin;
 *	error = ktask_register(&registration, addr, len, &ctl, NULL);
 *	...
 *	error = ktask_unregister(&registration, NULL);
 *
 * The plain call makes the pages one after another, by one thread, and holds
 * locks of the device meanwhile.  Here helpers make the pages, and the device
 * is called for one piece after another, none of which takes longer than a
 * stall budget.  Conventions and glossary: ktask/ktask.h.
 *
 *   piece   the part of a range that one call of the device's function registers
 *   stall   the time of one such call, in which others may wait for the device
 */
#ifndef KTASK_REGISTER_H
#define KTASK_REGISTER_H

#include <ktask/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device takes several calls at once, in any order.  In a long range a trial tells
 * whether two threads get more done than one: if not, calls are made in order. */
#define KTASK_REGISTER_PARALLEL 0x1u
/* The pages are there: make none, and do not look. */
#define KTASK_REGISTER_PRESENT 0x2u
/* The device only reads: make pages as if they were read. */
#define KTASK_REGISTER_READ 0x4u
/* The device's function makes missing pages itself, as fast as they can be made: where
 * it is called by several threads, they make none before, but for a trial. */
#define KTASK_REGISTER_MAKES_PAGES 0x8u
/* The device's function takes the lock of the process's mappings for writing, again and
 * again (VFIO's type1: for each run of pages).  While it is called in order, pages are
 * made by touching them, which leaves that lock alone (Linux 6.4). */
#define KTASK_REGISTER_LOCKS_MAPPINGS 0x10u

/**
 * ktask_register_func - register [start, end), or take that back
 * @arg: func_arg of the control block
 *
 * Context: the thread that called ktask_register() or ktask_unregister(), in
 * ascending order to register and in descending order to unregister; with
 * KTASK_REGISTER_PARALLEL helpers as well, several at once on distinct pieces, in
 * any order.  No lock is held: it may sleep, and call any function of the library.
 * To unregister it is called once for each piece that was registered, with the
 * same [start, end).  After a failure of ktask_register() one thread does that, in
 * descending order.
 *
 * A C++ exception may pass through ktask_register() where pieces are registered
 * in order: everything is taken back first.  With KTASK_REGISTER_PARALLEL, and
 * out of a function that unregisters, it ends the program.
 *
 * Return: 0, or any other value to stop: it is the result of the call.  A piece
 * that fails cleans up after itself, and is not unregistered.
 */
typedef int (*ktask_register_func)(void *start, void *end, void *arg);

/**
 * struct ktask_register_ctl - how to register
 *
 * Set by KTASK_REGISTER_CTL_INIT, or by one of the functions below for devices
 * that are known.  Read by ktask_register() and copied; what func_arg points to
 * must live until everything is unregistered.
 */
struct ktask_register_ctl {
	size_t struct_size;
	ktask_register_func register_func;
	ktask_register_func unregister_func;
	void *func_arg;

	/* optional                              default */
	unsigned flags; /*                       0; KTASK_REGISTER_* */
	unsigned stall_us; /*                    0: 50000; of one call */
	/* Bytes.  Edges between pieces lie at multiples of it, counted from the
	 * address that is registered: a slot of the device.  0: at multiples of
	 * the largest page, counted from address 0. */
	size_t unit_bytes;
	size_t max_piece_bytes; /*               0: any; at least one unit */
	uint64_t reserved[4]; /*                 must be 0 */
};

#define KTASK_REGISTER_CTL_INIT                                  \
	{                                                        \
		.struct_size = sizeof(struct ktask_register_ctl) \
	}

/** What is registered; opaque. */
struct ktask_registration;

/**
 * ktask_register - register a range with a device, piece by piece
 * @registration: set to what ktask_unregister() wants; NULL on failure, and for
 *	@len 0
 * @len: bytes; neither @addr nor @len need be aligned
 * @opts: NULL for defaults
 *
 * Pages that are missing are made by several threads ahead of the device's
 * calls.  If that fails because this memory has none (memory of a device), the
 * device's function is the judge.  The size of a piece follows from how long the
 * calls took: half of the stall budget is aimed at, and a call that took longer
 * than thought makes the next ones shorter.  The budget cannot hold where one
 * unit takes longer.
 *
 * @opts: max_threads for making pages, and for calls where the device takes
 * several; deadline_ns and progress_func are looked at between two calls and
 * while pages are made; the units of the progress and the result are bytes that
 * are registered, chunks are pieces.  chunk_us is not used.
 *
 * All or nothing is registered: on failure every piece is unregistered, the last
 * one first.  Pages that were made stay.
 *
 * Context: sleeps; may be called inside a chunk.  In a child that was forked in
 * a callback it ends with -ECANCELED, and nothing is taken back there: it is the
 * parent's.
 *
 * Return: 0; what @ctl->register_func returned; -EINVAL, -E2BIG: arguments,
 * nothing was done; -ENOMEM: a part is not mapped, or there is no memory;
 * -EHWPOISON; -ETIMEDOUT; -ECANCELED.  fail_offset of the result is that of the
 * first byte that could not be made, or of the piece that failed.
 */
KTASK_API int ktask_register(struct ktask_registration **registration,
			     void *addr, size_t len,
			     const struct ktask_register_ctl *ctl,
			     const struct ktask_opts *opts);

/**
 * ktask_unregister - take back all pieces
 * @registration: set to NULL once nothing is left to take back
 * @opts: NULL for defaults; as of ktask_register()
 *
 * The last one first; several at once where the device takes that
 * (KTASK_REGISTER_PARALLEL), which then may end in any order.  A piece is taken back in
 * one call, however long that takes.  A piece whose function fails is given up, which
 * counts as taking it back, and the others are taken back.  After a deadline or a cancel
 * @registration has the rest, and the call can be repeated.
 *
 * In the child of a fork the memory is not registered: the pieces are only
 * forgotten.
 *
 * Return: 0; the first error of @ctl->unregister_func, everything else having
 * been taken back; -ETIMEDOUT, -ECANCELED: there is a rest; -EINVAL, -E2BIG.
 * fail_offset of the result is that of the piece whose function failed first.
 */
KTASK_API int ktask_unregister(struct ktask_registration **registration,
			       const struct ktask_opts *opts);

/** What is registered now, and what that took; filled. */
struct ktask_registration_info {
	size_t struct_size;
	uint64_t bytes;
	uint64_t pieces;
	uint64_t calls_ns; /* all calls of register_func together */
	uint64_t longest_ns; /* the longest of them */
};

#define KTASK_REGISTRATION_INFO_INIT                                  \
	{                                                             \
		.struct_size = sizeof(struct ktask_registration_info) \
	}

/** ktask_registration_info_get - fill @info; 0, -EINVAL, -E2BIG */
KTASK_API int
ktask_registration_info_get(const struct ktask_registration *registration,
			    struct ktask_registration_info *info);

/**
 * ktask_registration_piece - the piece with number @index, in ascending order
 * @start, @end: set; @end is behind the last byte
 *
 * For devices whose requests must not cross from one piece into another.
 *
 * Return: 0; -ENOENT behind the last one; -EINVAL.
 */
KTASK_API int
ktask_registration_piece(const struct ktask_registration *registration,
			 size_t index, void **start, void **end);

/*
 * Devices that are known.  Each function below sets @ctl, all of it but its size,
 * which KTASK_REGISTER_CTL_INIT has set, for the device
 * that its structure describes; stall_us and others may be changed then.  The
 * structure must live, unchanged, until everything is unregistered, and its descriptor
 * must stay open: unregistering uses the descriptor's number; if you closed it, that may
 * be another file.  Nothing else is remembered of a number.  All fields must be there, as
 * a macro sets them; those that are not used are 0.  Return: 0; -EINVAL; -E2BIG; what
 * else is told.
 */

/**
 * struct ktask_uring_buffers - fixed buffers of an io_uring(7)
 *
 * Byte i of the range is in slot first_slot + i / slot_bytes of the ring's table of
 * buffers, which has been made before, with empty slots.
 */
struct ktask_uring_buffers {
	size_t struct_size; /* KTASK_URING_BUFFERS_INIT */
	int ring_fd;
	unsigned first_slot;
	void *addr; /* of the range */
	size_t slot_bytes; /* whole pages, at most 1 GiB; 0: set to 1 GiB */
};

#define KTASK_URING_BUFFERS_INIT                                   \
	{                                                          \
		.struct_size = sizeof(struct ktask_uring_buffers), \
		.ring_fd = -1                                      \
	}

/**
 * ktask_register_uring - register with an io_uring
 *
 * Where the kernel can (6.13), pages are pinned for rings of this call's own, several
 * at once, and cloned into the program's, which is blocked for microseconds.
 * Otherwise for the ring itself, in order.  A ring for one thread only
 * (IORING_SETUP_SINGLE_ISSUER): clear KTASK_REGISTER_PARALLEL.
 *
 * Return: as above; -errno where the kernel has no fixed buffers that can be set one
 * by one (before 5.13), or forbids io_uring.
 */
KTASK_API int ktask_register_uring(struct ktask_register_ctl *ctl,
				   struct ktask_uring_buffers *buffers);

/**
 * struct ktask_iommu - addresses for a device behind an IOMMU
 *
 * Byte i of the range is at iova + i for the device.
 */
struct ktask_iommu {
	size_t struct_size; /* KTASK_IOMMU_INIT */
	int fd; /* of the VFIO container, or of /dev/iommu */
	unsigned ioas_id; /* iommufd only */
	void *addr; /* of the range; whole pages */
	uint64_t iova; /* whole pages */
	unsigned prot; /* the device's: PROT_READ | PROT_WRITE; 0: both */
	unsigned padding;
};

#define KTASK_IOMMU_INIT                                            \
	{                                                           \
		.struct_size = sizeof(struct ktask_iommu), .fd = -1 \
	}

/** ktask_register_vfio - map by VFIO_IOMMU_MAP_DMA, in order: type1 has one lock */
KTASK_API int ktask_register_vfio(struct ktask_register_ctl *ctl,
				  struct ktask_iommu *iommu);

/** ktask_register_iommufd - map by IOMMU_IOAS_MAP, several pieces at once where that
 * gains something */
KTASK_API int ktask_register_iommufd(struct ktask_register_ctl *ctl,
				     struct ktask_iommu *iommu);

struct ibv_pd;
struct ibv_mr;

/**
 * struct ktask_verbs - memory regions of a protection domain (libibverbs)
 *
 * Byte i of the range is in mrs[i / mr_bytes], whose keys are the program's to send.
 */
struct ktask_verbs {
	size_t struct_size; /* KTASK_VERBS_INIT */
	struct ibv_pd *pd;
	int access; /* IBV_ACCESS_*, without the optional ones */
	unsigned padding;
	void *addr; /* of the range */
	size_t mr_bytes; /* of one region; any */
	struct ibv_mr **mrs; /* filled; as many as the range needs */
	size_t nr_mrs; /* that there is room for; more are -ENOSPC */
};

#define KTASK_VERBS_INIT                                  \
	{                                                 \
		.struct_size = sizeof(struct ktask_verbs) \
	}

/**
 * ktask_register_verbs - register by ibv_reg_mr(3), several regions at once
 *
 * Return: as above; -ELIBACC: libibverbs.so.1 cannot be loaded; -ENOMEM.
 */
KTASK_API int ktask_register_verbs(struct ktask_register_ctl *ctl,
				   struct ktask_verbs *verbs);

/** struct ktask_cuda - host memory for the GPUs of this process */
struct ktask_cuda {
	size_t struct_size; /* KTASK_CUDA_INIT */
	unsigned flags; /* cudaHostRegister*; 0: cudaHostRegisterDefault */
	int cuda_error; /* set: the last cudaError_t that was none of -errno */
	/* NULL: libcudart, loaded already or to be found.  A name is replaced by
	 * a copy that is never freed: the program's string may go. */
	const char *library;
};

#define KTASK_CUDA_INIT                                  \
	{                                                \
		.struct_size = sizeof(struct ktask_cuda) \
	}

/**
 * ktask_register_cuda - register by cudaHostRegister(), in order
 *
 * A copy that the GPU makes must not cross from one piece into another: set
 * unit_bytes of @ctl to what is copied at once.
 *
 * Return: as above; -ELIBACC: the library cannot be loaded; -ENOMEM.
 */
KTASK_API int ktask_register_cuda(struct ktask_register_ctl *ctl,
				  struct ktask_cuda *cuda);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_REGISTER_H */
