/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that is registered with a device, in good cases and bad, described line by
 * line: buffers of an io_uring, and requests of VFIO and iommufd on a device that has
 * none.  The same text must come out with and without the shim.
 *
 *	register-cases uring		77 where there is no io_uring
 *	register-cases requests
 *	register-cases verbs		by the library behind ibv_reg_mr()
 *	register-cases liburing		by its function
 *	register-cases plugin FILE	by a plugin that brings that library along
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "probe.h"

#define RW (PROT_READ | PROT_WRITE)
#define IOAS_MAP _IO(VFIO_TYPE, 0x85)

static char *map_memory(int prot, int type, int fd)
{
	char *space = guarded_space(SIZE_BYTES);

	must_hold(mmap(space, SIZE_BYTES, prot,
		       type | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd,
		       0) == space,
		  "mmap");
	return space;
}

/* ---- io_uring ---- */

static int ring_fd = -1;

static void open_ring(void)
{
	struct io_uring_params params = { 0 };

	if (ring_fd >= 0)
		close(ring_fd);
	ring_fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring_fd < 0)
		exit(77);
}

/* Each with a ring of its own, which is closed and so unpins. */
static void add_buffers(const char *name, const struct iovec *buffers,
			unsigned nr, char *space)
{
	int rc;

	open_ring();
	errno = ERRNO_MARK;
	rc = (int)syscall(SYS_io_uring_register, ring_fd,
			  IORING_REGISTER_BUFFERS, buffers, nr);
	print_outcome(name, rc, errno);
	if (rc == 0)
		print_pages(space, SIZE_BYTES);
	putchar('\n');
}

static void add_whole(const char *name, char *space)
{
	struct iovec buffer = { space, SIZE_BYTES };

	add_buffers(name, &buffer, 1, space);
	unmap_space(space, SIZE_BYTES);
}

static void add_parts(const char *name, size_t part_bytes)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);
	static struct iovec buffers[1024];
	unsigned nr = (unsigned)(SIZE_BYTES / part_bytes);

	for (unsigned i = 0; i < nr; i++)
		buffers[i] =
			(struct iovec){ space + i * part_bytes, part_bytes };
	add_buffers(name, buffers, nr, space);
	unmap_space(space, SIZE_BYTES);
}

static void add_tagged(void)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);
	struct iovec buffer = { space, SIZE_BYTES };
	struct io_uring_rsrc_register add = { .nr = 1,
					      .data = (uintptr_t)&buffer };
	int rc;

	open_ring();
	errno = ERRNO_MARK;
	rc = (int)syscall(SYS_io_uring_register, ring_fd,
			  IORING_REGISTER_BUFFERS2, &add, sizeof(add));
	print_outcome("tagged", rc, errno);
	print_pages(space, SIZE_BYTES);
	putchar('\n');
	unmap_space(space, SIZE_BYTES);
}

static void add_hole(void)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);

	munmap(space + SIZE_BYTES / 2, PAGE_BYTES);
	add_whole("a hole", space);
}

static void add_present(void)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);

	memset(space, 1, SIZE_BYTES);
	add_whole("present", space);
}

/* The kernel refuses files that track what is written: nothing may be written. */
static void add_file(void)
{
	int fd = patterned_file(SIZE_BYTES);

	add_whole("private file", map_memory(RW, MAP_PRIVATE, fd));
	add_whole("file", map_memory(RW, MAP_SHARED, fd));
	close(fd);
}

static void add_memfd(void)
{
	int fd = memfd_create("register", MFD_CLOEXEC);

	must_hold(!ftruncate(fd, SIZE_BYTES), "ftruncate");
	add_whole("memfd", map_memory(RW, MAP_SHARED, fd));
	close(fd);
}

static void register_with_uring(void)
{
	add_whole("anonymous", map_memory(RW, MAP_PRIVATE, -1));
	add_whole("shared", map_memory(RW, MAP_SHARED, -1));
	add_whole("read only", map_memory(PROT_READ, MAP_PRIVATE, -1));
	add_whole("nothing allowed", map_memory(PROT_NONE, MAP_PRIVATE, -1));
	add_parts("parts", SIZE_BYTES / 8);
	add_parts("many parts", 2 * PAGE_BYTES);
	add_tagged();
	add_hole();
	add_present();
	add_file();
	add_memfd();
	add_buffers("no array", (struct iovec *)8, 1, NULL);
	add_buffers("too many", (struct iovec *)8, 1 << 20, NULL);
}

/* ---- requests ---- */

static int device_fd;

static void ask_device(const char *name, unsigned long request, void *arg)
{
	int rc;

	errno = ERRNO_MARK;
	rc = ioctl(device_fd, request, arg);
	print_outcome(name, rc, errno);
	putchar('\n');
	errno = ERRNO_MARK;
	rc = (int)syscall(SYS_ioctl, device_fd, request, arg);
	print_outcome(name, rc, errno);
	putchar('\n');
}

static void make_requests(void)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)space,
		.size = SIZE_BYTES,
	};
	/* struct iommu_ioas_map */
	uint32_t ioas[10] = { sizeof(ioas), 7, 1, 0 };
	uint64_t range[3] = { (uintptr_t)space, SIZE_BYTES, 0 };

	memcpy(ioas + 4, range, sizeof(range));
	ask_device("type1", VFIO_IOMMU_MAP_DMA, &map);
	madvise(space, SIZE_BYTES, MADV_DONTNEED);
	ask_device("iommufd", IOAS_MAP, ioas);
	ask_device("bad address", VFIO_IOMMU_MAP_DMA, (void *)8);
	map.vaddr = UINTPTR_MAX - PAGE_BYTES;
	ask_device("wraps", VFIO_IOMMU_MAP_DMA, &map);
	map.argsz = 8;
	ask_device("too short", VFIO_IOMMU_MAP_DMA, &map);
	unmap_space(space, SIZE_BYTES);
}

static void ask_devices(void)
{
	device_fd = open("/dev/null", O_RDWR);
	must_hold(device_fd >= 0, "/dev/null");
	make_requests();
	close(device_fd);
	make_requests();
}

/* ---- verbs ---- */

struct ibv_pd;
struct ibv_mr;
typedef struct ibv_mr *(*reg_mr_func)(struct ibv_pd *pd, void *addr, size_t len,
				      int access);

#pragma weak ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access);

/* The library refuses an access of 0x20 with EINVAL. */
static void add_region(reg_mr_func reg_mr, const char *name, char *space,
		       int access)
{
	struct ibv_mr *mr;

	errno = ERRNO_MARK;
	mr = reg_mr((struct ibv_pd *)space, space, SIZE_BYTES, access);
	print_outcome(name, mr == (struct ibv_mr *)space ? 0 : -1, errno);
	if (mr)
		print_pages(space, SIZE_BYTES);
	putchar('\n');
	unmap_space(space, SIZE_BYTES);
}

static void register_with_verbs(reg_mr_func reg_mr)
{
	must_hold(reg_mr != NULL, "ibv_reg_mr");
	add_region(reg_mr, "writes", map_memory(RW, MAP_PRIVATE, -1), 1);
	add_region(reg_mr, "reads", map_memory(RW, MAP_PRIVATE, -1), 0);
	add_region(reg_mr, "on demand", map_memory(RW, MAP_PRIVATE, -1), 0x40);
	add_region(reg_mr, "refused", map_memory(RW, MAP_PRIVATE, -1), 0x21);
}

struct io_uring;

#pragma weak io_uring_register_buffers
int io_uring_register_buffers(struct io_uring *ring,
			      const struct iovec *buffers, unsigned nr);

static void register_with_liburing(void)
{
	char *space = map_memory(RW, MAP_PRIVATE, -1);
	struct iovec halves[2] = { { space, SIZE_BYTES / 2 },
				   { space + SIZE_BYTES / 2, SIZE_BYTES / 2 } };

	must_hold(io_uring_register_buffers != NULL,
		  "io_uring_register_buffers");
	errno = ERRNO_MARK;
	print_outcome(
		"liburing",
		io_uring_register_buffers((struct io_uring *)space, halves, 2),
		errno);
	putchar('\n');
}

static void load_plugin(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!plugin)
		fprintf(stderr, "%s\n", dlerror());
	must_hold(plugin != NULL, path);
	register_with_verbs((reg_mr_func)dlsym(plugin, "plugin_reg_mr"));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(what, "uring"))
		register_with_uring();
	else if (!strcmp(what, "requests"))
		ask_devices();
	else if (!strcmp(what, "verbs"))
		register_with_verbs(ibv_reg_mr);
	else if (!strcmp(what, "liburing"))
		register_with_liburing();
	else if (argc > 2)
		load_plugin(argv[2]);
	return 0;
}
