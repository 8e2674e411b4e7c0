/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The screen: see screen.h.  The keys that stop a process are disabled, because a stopped
 * process would leave the terminal in a wrong state.  The interrupt key works.
 *
 * Behaves badly if killed by SIGKILL: the terminal stays without echo, see reset(1).
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "screen.h"

static struct termios former_settings;
static bool keys_changed; /* standard input is a terminal that was changed */

bool screen_possible(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && *term && strcmp(term, "dumb");
}

void screen_begin(void)
{
	struct termios raw;

	if (!tcgetattr(STDIN_FILENO, &former_settings)) {
		raw = former_settings;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VSUSP] = _POSIX_VDISABLE;
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		keys_changed = !tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	fputs("\033[?1049h\033[?25l", stdout);
}

void screen_end(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (keys_changed)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &former_settings);
	keys_changed = false;
}

void screen_home(void)
{
	fputs("\033[H", stdout);
}

void screen_done(void)
{
	fputs("\033[J", stdout);
	fflush(stdout);
}

void screen_size(int fd, unsigned *rows, unsigned *columns)
{
	struct winsize size = { 0 };

	ioctl(fd, TIOCGWINSZ, &size);
	*rows = size.ws_row ? size.ws_row : 24;
	*columns = size.ws_col ? size.ws_col : 80;
}

int screen_key(unsigned ms)
{
	struct pollfd input = { .fd = keys_changed ? STDIN_FILENO : -1,
				.events = POLLIN };
	unsigned char key;

	if (poll(&input, 1, (int)ms) <= 0)
		return 0;
	if (read(STDIN_FILENO, &key, 1) == 1)
		return key;
	/* The terminal is gone, or at its end: no more keys, no busy loop. */
	keys_changed = false;
	return 0;
}
