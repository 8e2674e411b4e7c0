/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The line that a job leaves for `ktask stat`.  It is one write(2) to a descriptor opened
 * to append, so that lines of several processes do not mix.  The file is opened for each
 * job: a program may close all descriptors that it does not know, and reuse their numbers.
 *
 *	populate pid error threads lent units chunks wall_ns caller_ns helper_ns
 *
 * Locking: stat_path is written once, under pthread_once(), and constant from then.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/account.h"
#include "util/file.h"

#define LINE 256

static char stat_path[128];
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

static void read_environment(void)
{
	const char *name = secure_getenv("KTASK_STAT");

	if (name && name[0] == '/' && strlen(name) < sizeof(stat_path))
		strcpy(stat_path, name);
}

bool account_on(void)
{
	pthread_once(&read_once, read_environment);
	return stat_path[0] != '\0';
}

/* Ours alone, made for this, and not too long already. */
static bool is_for_us(int fd)
{
	char header[sizeof(ACCOUNT_HEADER) - 1];
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & (S_IRWXG | S_IRWXO)) ||
	    st.st_size > ACCOUNT_BYTES_MAX)
		return false;
	if (!file_may_have((uint64_t)st.st_size + LINE))
		return false;
	return pread(fd, header, sizeof(header), 0) ==
		       (ssize_t)sizeof(header) &&
	       !memcmp(header, ACCOUNT_HEADER, sizeof(header));
}

/* No space and nothing that a terminal would obey. */
static void plain_name(char to[16], const char *name)
{
	size_t i;

	for (i = 0; i < 15 && name[i]; i++)
		to[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
	to[i] = '\0';
	if (!i)
		strcpy(to, "?");
}

static int format_line(const struct account *account, char line[LINE])
{
	char name[16];

	plain_name(name, account->name ? account->name : "job");
	return snprintf(line, LINE,
			"%s %d %d %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 " %" PRIu64 "\n",
			name, (int)getpid(), account->error, account->threads,
			account->lent, account->units, account->chunks,
			account->wall_ns, account->caller_cpu_ns,
			account->helper_cpu_ns);
}

void account_job(const struct account *account)
{
	char line[LINE];
	int len = format_line(account, line);
	ssize_t put;
	int fd;

	fd = open(stat_path,
		  O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (is_for_us(fd))
		do
			put = write(fd, line, (size_t)len);
		while (put < 0 && errno == EINTR);
	close(fd);
}
