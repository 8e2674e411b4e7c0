/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that knows nothing of ktask and maps memory for a device behind an IOMMU by
 * VFIO's type1, in good cases and bad, described line by line.  The same text must come
 * out with the shim and without it.
 */
#include <sys/ioctl.h>

#include <linux/vfio.h>

#include "../../vfio_device.h"
#include "cases.h"

#define IOVA ((uint64_t)1 << 30)
#define BOTH (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

static int container = -1;

static struct vfio_iommu_type1_dma_map make_request(const char *at, size_t len,
						    unsigned flags)
{
	return (struct vfio_iommu_type1_dma_map){
		.argsz = sizeof(struct vfio_iommu_type1_dma_map),
		.flags = flags,
		.vaddr = (uintptr_t)at,
		.iova = IOVA,
		.size = len,
	};
}

static void add_mapping(const char *name, struct vfio_iommu_type1_dma_map map)
{
	int error;

	errno = 99;
	error = ioctl(container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
	printf("%s: error %d, %ld KiB locked", name, error,
	       status_kib("VmLck:"));
	printf(", unmapped %lld", (long long)vfio_unmap_all(container));
	printf(", %ld KiB locked\n", status_kib("VmLck:"));
	fflush(stdout);
}

static void add_and_unmap(const char *name, char *at, unsigned flags)
{
	add_mapping(name, make_request(at, LEN, flags));
	munmap(at, LEN);
}

static void add_hole(const char *name, size_t hole)
{
	add_and_unmap(name, map_with_hole(hole), BOTH);
}

static void add_malformed(void)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);
	struct vfio_iommu_type1_dma_map map = make_request(at, LEN, BOTH);

	map.argsz -= 1;
	add_mapping("too short", map);
	map = make_request(at + 1, LEN / 2, BOTH);
	add_mapping("odd address", map);
	map = make_request(at, LEN - 1, BOTH);
	add_mapping("odd length", map);
	map = make_request(at, LEN, BOTH | 1u << 9);
	add_mapping("unknown flag", map);
	map = make_request(at, LEN, BOTH);
	map.iova = UINT64_MAX - LEN / 2 + 1;
	add_mapping("past the last address", map);
	munmap(at, LEN);
	errno = 99;
	printf("no request: %d", ioctl(container, VFIO_IOMMU_MAP_DMA, NULL));
	printf(", errno %d\n", errno);
}

/* What is mapped already stays as it is. */
static void add_twice(void)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);

	must_hold(!vfio_map(container, at, PAGE, IOVA + LEN / 2), "mapping");
	add_and_unmap("an address that is taken", at, BOTH);
}

static void add_contents(void)
{
	char *at = map_memory(RW, MAP_PRIVATE, -1);

	for (size_t pos = 0; pos < LEN; pos += 2 * PAGE)
		memset(at + pos, 5, PAGE);
	add_mapping("half of it present", make_request(at, LEN, BOTH));
	add_mapping("present", make_request(at, LEN, BOTH));
	for (size_t pos = 0; pos < LEN; pos += PAGE)
		must_hold(at[pos] == (pos % (2 * PAGE) ? 0 : 5), "contents");
	printf("contents are kept\n");
	munmap(at, LEN);
}

int main(void)
{
	container = vfio_open();
	must_hold(container >= 0, "opening the device");
	add_and_unmap("private", map_memory(RW, MAP_PRIVATE, -1), BOTH);
	add_and_unmap("shared", map_memory(RW, MAP_SHARED, -1), BOTH);
	add_and_unmap("for reading", map_memory(RW, MAP_PRIVATE, -1),
		      VFIO_DMA_MAP_FLAG_READ);
	add_and_unmap("for writing", map_memory(RW, MAP_PRIVATE, -1),
		      VFIO_DMA_MAP_FLAG_WRITE);
	add_and_unmap("for neither", map_memory(RW, MAP_PRIVATE, -1), 0);
	add_and_unmap("read only", map_memory(PROT_READ, MAP_PRIVATE, -1),
		      VFIO_DMA_MAP_FLAG_READ);
	add_and_unmap("read only, to be written",
		      map_memory(PROT_READ, MAP_PRIVATE, -1), BOTH);
	add_and_unmap("nothing allowed", map_memory(PROT_NONE, MAP_PRIVATE, -1),
		      BOTH);
	add_hole("a hole at 0 KiB", 0);
	add_hole("a hole at 16384 KiB", LEN / 2);
	add_hole("a hole at 32764 KiB", LEN - PAGE);
	add_malformed();
	add_twice();
	add_contents();
	return 0;
}
