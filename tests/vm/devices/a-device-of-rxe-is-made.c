/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Loads the modules of the guest, in the order of their names, and makes an RDMA device
 * of software (rdma_rxe) on a network device that sends nowhere.  Runs before the
 * others, which use it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "ktest.h"
#include "rdma_link.h"
#include "verbs.h"

#define MODULES "/modules"

static int load_module(const char *name)
{
	char path[300];
	int fd, error;

	snprintf(path, sizeof(path), MODULES "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	error = syscall(SYS_finit_module, fd, "", 0) ? errno : 0;
	close(fd);
	if (error)
		printf("# %s: %s\n", name, strerror(error));
	return error;
}

static int is_module(const struct dirent *entry)
{
	return !!strstr(entry->d_name, ".ko");
}

static void all_modules_are_loaded(void **state)
{
	struct dirent **entries;
	int nr = scandir(MODULES, &entries, is_module, alphasort);

	(void)state;
	assert_true(nr > 0);
	for (int i = 0; i < nr; i++)
		assert_int_equal(load_module(entries[i]->d_name), 0);
}

static void set_up(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void a_device_is_made(void **state)
{
	static const char name[] = "rxe0", type[] = "rxe", below[] = "dummy0";
	struct rdma_link_request request;

	(void)state;
	set_up(below);
	rdma_link_begin(&request, RDMA_NLDEV_CMD_NEWLINK);
	rdma_link_put(&request, RDMA_NLDEV_ATTR_DEV_NAME, name, sizeof(name));
	rdma_link_put(&request, RDMA_NLDEV_ATTR_LINK_TYPE, type, sizeof(type));
	rdma_link_put(&request, RDMA_NLDEV_ATTR_NDEV_NAME, below,
		      sizeof(below));
	assert_int_equal(rdma_link_ask(&request, NULL, NULL), 0);
	assert_int_equal(verbs_count("mr"), 0);
}

static void the_library_finds_it(void **state)
{
	struct ibv_pd *pd = verbs_open();

	(void)state;
	assert_true(verbs_count("ctx") == 1);
	verbs_close(pd);
	assert_int_equal(verbs_count("ctx"), 0);
}

KTEST_MAIN(KTEST(all_modules_are_loaded), KTEST(a_device_is_made),
	   KTEST(the_library_finds_it))
