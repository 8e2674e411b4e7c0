/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * umtd: loads the program once and hands descriptors to processes that may not
 * load it, for their own threads.  See umtd.8 for whom it trusts.
 *
 * Owns the socket and the loop.  Does not own who may have what (clients.c).  It
 * never waits for a client, and forgets a client when the connection ends.  Only
 * what clients hold themselves outlives it.
 *
 * Locking: none.  There is one thread, and the handler of its only signal (sent_fds.c)
 * touches nothing.  That holds for all files of this directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/bpf_program.h"
#include "common/option.h"
#include "clients.h"
#include "sent_fds.h"

#define EVENTS_MAX 32
/* The program is unloaded when nobody has used it for this long. */
#define LINGER_MS 10000
#define SYSTEMD_FD 3
/* Between two tries while there is no descriptor left for a client. */
#define FULL_US 10000

static const char usage_text[] =
	"usage: umtd [--socket PATH]\n\n"
	"Serve user-monitored threads to processes without CAP_BPF.\n\n"
	"  --socket PATH     listen on PATH (default: " UMT_BROKER_PATH ")\n"
	"  --help            print this\n"
	"  --version         print the version\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_LONG('h') },
	{ "socket", required_argument, NULL, OPTION_LONG('s') },
	{ "version", no_argument, NULL, OPTION_LONG('V') },
	{ 0 },
};

static int epoll_fd;

static int report_errno(const char *what)
{
	fprintf(stderr, "umtd: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- the socket ---- */

/* From systemd, as sd_listen_fds(3) has it. */
static int passed_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *nr = getenv("LISTEN_FDS");

	if (!pid || !nr || atoi(pid) != getpid() || atoi(nr) != 1)
		return -1;
	return SYSTEMD_FD;
}

/*
 * A socket that refuses connections was left by a umtd that was killed.  What is
 * no socket refuses them as well, so that is checked first.
 */
static void remove_dead(const struct sockaddr_un *name)
{
	struct stat file;
	int fd;

	if (lstat(name->sun_path, &file) || !S_ISSOCK(file.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) &&
	    errno == ECONNREFUSED)
		unlink(name->sun_path);
	close(fd);
}

static int own_socket(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, error;

	if (strlen(path) >= sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	remove_dead(&name);
	/* Anybody may connect. */
	mask = umask(0);
	error = bind(fd, (struct sockaddr *)&name, sizeof(name));
	umask(mask);
	if (!error && !listen(fd, 128))
		return fd;
	close(fd);
	return -1;
}

/* ---- the loop ---- */

static int watch_fd(int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* If there are too many clients the connection is closed.  The client may try again. */
static void accept_client(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client = fd < 0 ? NULL : client_accept(fd);

	/* No descriptor is left.  The client still waits, so epoll_wait() would return at once. */
	if (fd < 0 && errno != EAGAIN)
		usleep(FULL_US);
	if (client && watch_fd(fd, client))
		client_gone(client);
	else if (fd >= 0 && !client)
		client_close(fd);
}

static int next_timeout_ms(void)
{
	int detach_ms = clients_detach_if_all_paused();

	if (detach_ms >= 0)
		return detach_ms;
	return program_loaded() ? LINGER_MS : -1;
}

/* Serve at most one request of each client. */
static void serve_clients(int listener)
{
	struct epoll_event events[EVENTS_MAX];
	int i, nr;

	for (;;) {
		nr = epoll_wait(epoll_fd, events, EVENTS_MAX,
				next_timeout_ms());
		if (!nr && !clients_use_program())
			program_unload();
		for (i = 0; i < nr; i++) {
			struct client *client = events[i].data.ptr;

			if (!client)
				accept_client(listener);
			else if (!client_serve(client))
				client_gone(client);
		}
	}
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run_daemon(const char *path)
{
	int listener = passed_socket();

	signal(SIGPIPE, SIG_IGN);
	raise_limit();
	if (listener < 0)
		listener = own_socket(path);
	if (listener < 0) {
		fprintf(stderr, "umtd: listening on %s: %s\n", path,
			strerror(errno));
		return 1;
	}
	sent_fds_refuse(listener);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || fcntl(listener, F_SETFL, O_NONBLOCK) ||
	    watch_fd(listener, NULL))
		return report_errno("waiting for clients");
	serve_clients(listener);
	return 0;
}

static int wrong_option(char **argv, int option)
{
	char text[256];

	option_refused(text, sizeof(text), argv, option);
	fprintf(stderr, "umtd: %s\n", text);
	return 2;
}

int main(int argc, char **argv)
{
	const char *path = UMT_BROKER_PATH;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hs:V", long_options,
				     NULL)) != -1) {
		switch (option_letter(option)) {
		case 's':
			path = optarg;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			printf("umtd %s\n", KTASK_VERSION);
			return 0;
		default:
			return wrong_option(argv, option);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "umtd: unexpected argument '%s'\n",
			argv[optind]);
		return 2;
	}
	return run_daemon(path);
}
