/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Library functions that register memory with a device: those of liburing, which makes
 * its system calls without libc, and ibv_reg_mr() of libibverbs.  The shim makes the
 * memory present (register_calls.c), and then calls the library's own function.
 *
 * Not seen: a library that is linked statically, and functions that a program finds by
 * dlsym().
 *
 * Locking: none.  Any thread keeps what it found, by atomic stores; all find the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include <linux/io_uring.h>

#include <ktask/ktask.h>

#include "preload/shim.h"
#include "util/scoped.h"

/* As <infiniband/verbs.h> has them. */
#define ACCESS_LOCAL_WRITE 0x1u
#define ACCESS_REMOTE_WRITE 0x2u
#define ACCESS_REMOTE_ATOMIC 0x8u
#define ACCESS_BIND_WINDOW 0x10u
#define ACCESS_ON_DEMAND 0x40u
#define ACCESS_WRITES                                                      \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_BIND_WINDOW)

/* A library that was loaded with one plugin alone is not behind us, but among what
 * that plugin needs. */
static void *find_of_caller(const char *name, const void *from)
{
	Dl_info caller;
	void *plugin, *found;

	if (!dladdr(from, &caller) || !caller.dli_fname)
		return NULL;
	plugin = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!plugin)
		return NULL;
	found = dlsym(plugin, name);
	dlclose(plugin);
	return found;
}

static void *find_next(_Atomic uintptr_t *kept, const char *name,
		       const void *from)
{
	void *found = (void *)atomic_load(kept);
	keep_errno();

	if (!found)
		found = dlsym(RTLD_NEXT, name);
	if (!found)
		found = find_of_caller(name, from);
	atomic_store(kept, (uintptr_t)found);
	return found;
}

/*
 * The end of each function here: prepare the memory for its caller (@from), call the
 * library's function of the same name, and return its result.  If there is no such
 * function, return @refusal.
 */
#define RETURN_NEXT(function, from, refusal, prepare, ...)                   \
	do {                                                                 \
		static _Atomic uintptr_t kept;                               \
		const void *from = __builtin_return_address(0);              \
		__typeof__(&(function)) next =                               \
			(__typeof__(next))find_next(&kept, #function, from); \
                                                                             \
		if (!next)                                                   \
			return refusal;                                      \
		prepare;                                                     \
		return next(__VA_ARGS__);                                    \
	} while (0)

struct io_uring;

KTASK_API int io_uring_register_buffers(struct io_uring *ring,
					const struct iovec *buffers,
					unsigned nr);
KTASK_API int io_uring_register_buffers_tags(struct io_uring *ring,
					     const struct iovec *buffers,
					     const uint64_t *tags, unsigned nr);
KTASK_API int io_uring_register_buffers_update_tag(struct io_uring *ring,
						   unsigned slot,
						   const struct iovec *buffers,
						   const uint64_t *tags,
						   unsigned nr);
KTASK_API int io_uring_register(unsigned fd, unsigned code, const void *arg,
				unsigned nr);

KTASK_API int io_uring_register_buffers(struct io_uring *ring,
					const struct iovec *buffers,
					unsigned nr)
{
	RETURN_NEXT(
		io_uring_register_buffers, from, -ENOSYS,
		shim_register_uring(IORING_REGISTER_BUFFERS, buffers, nr, from),
		ring, buffers, nr);
}

KTASK_API int io_uring_register_buffers_tags(struct io_uring *ring,
					     const struct iovec *buffers,
					     const uint64_t *tags, unsigned nr)
{
	RETURN_NEXT(
		io_uring_register_buffers_tags, from, -ENOSYS,
		shim_register_uring(IORING_REGISTER_BUFFERS, buffers, nr, from),
		ring, buffers, tags, nr);
}

KTASK_API int io_uring_register_buffers_update_tag(struct io_uring *ring,
						   unsigned slot,
						   const struct iovec *buffers,
						   const uint64_t *tags,
						   unsigned nr)
{
	RETURN_NEXT(
		io_uring_register_buffers_update_tag, from, -ENOSYS,
		shim_register_uring(IORING_REGISTER_BUFFERS, buffers, nr, from),
		ring, slot, buffers, tags, nr);
}

KTASK_API int io_uring_register(unsigned fd, unsigned code, const void *arg,
				unsigned nr)
{
	RETURN_NEXT(io_uring_register, from, -ENOSYS,
		    shim_register_uring(code, arg, nr, from), fd, code, arg,
		    nr);
}

struct ibv_pd;
struct ibv_mr;

KTASK_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
				    int access);
KTASK_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					 size_t len, uint64_t iova, int access);
KTASK_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					  size_t len, uint64_t iova,
					  unsigned access);

/* What is registered on demand is not pinned. */
static void prepare_verbs(void *addr, size_t len, unsigned access,
			  const void *from)
{
	if (!(access & ACCESS_ON_DEMAND))
		shim_register_range(addr, len, access & ACCESS_WRITES, from);
}

static struct ibv_mr *refuse_verbs(void)
{
	errno = ENOSYS;
	return NULL;
}

KTASK_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
				    int access)
{
	RETURN_NEXT(ibv_reg_mr, from, refuse_verbs(),
		    prepare_verbs(addr, len, (unsigned)access, from), pd, addr,
		    len, access);
}

KTASK_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					 size_t len, uint64_t iova, int access)
{
	RETURN_NEXT(ibv_reg_mr_iova, from, refuse_verbs(),
		    prepare_verbs(addr, len, (unsigned)access, from), pd, addr,
		    len, iova, access);
}

KTASK_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					  size_t len, uint64_t iova,
					  unsigned access)
{
	RETURN_NEXT(ibv_reg_mr_iova2, from, refuse_verbs(),
		    prepare_verbs(addr, len, access, from), pd, addr, len, iova,
		    access);
}
