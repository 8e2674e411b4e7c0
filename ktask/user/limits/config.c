/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The administrator's file and the environment.  Only whole numbers and known words are
 * valid; anything else counts as not set.  Set-user-ID programs ignore the environment
 * (secure_getenv).
 *
 * Locking: process_config is written once, under pthread_once(), and constant from then.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/deps.h"
#include "user/limits/config.h"
#include "util/file.h"
#include "util/scoped.h"

static struct config process_config;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

static const char *const energy_names[] = {
	[CONFIG_ENERGY_ALWAYS] = "always",
	[CONFIG_ENERGY_AUTO] = "auto",
	[CONFIG_ENERGY_NEVER] = "never",
};

const char *config_energy_name(enum config_energy energy)
{
	return energy_names[energy];
}

static const char *const ahead_names[] = {
	[CONFIG_AHEAD_ON] = "on",
	[CONFIG_AHEAD_SMALL] = "small",
	[CONFIG_AHEAD_OFF] = "off",
};

const char *config_ahead_name(enum config_ahead ahead)
{
	return ahead_names[ahead];
}

/* Return: -1 for a word that is none of them. */
static int number_of(const char *word, const char *const *names, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(word, names[i]))
			return i;
	return -1;
}

static int energy_of(const char *word)
{
	return number_of(word, energy_names, CONFIG_ENERGY_NEVER + 1);
}

/* ---- the file ---- */

static char *trim_blanks(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

/* A number out of its range is garbage like any other. */
static void set_number(int *to, const char *value, uint64_t min, uint64_t max)
{
	uint64_t number;

	if (text_number(value, &number) && number >= min && number <= max)
		*to = (int)number;
}

static void set_value(struct config_file *file, const char *key,
		      const char *value)
{
	int energy = energy_of(value);
	int ahead = number_of(value, ahead_names, CONFIG_AHEAD_OFF + 1);

	if (!strcmp(key, "cap_percent"))
		set_number(&file->cap_percent, value, 0, 100);
	else if (!strcmp(key, "node_cap_percent"))
		set_number(&file->node_cap_percent, value, 0, 100);
	else if (!strcmp(key, "max_threads"))
		set_number(&file->max_threads, value, 1, CONFIG_THREADS_MAX);
	else if (!strcmp(key, "energy") && energy >= 0)
		file->energy = energy;
	else if (!strcmp(key, "ahead") && ahead >= 0)
		file->ahead = ahead;
}

static void read_line(struct config_file *file, char *line)
{
	char *equals;

	line[strcspn(line, "#")] = '\0';
	equals = strchr(line, '=');
	if (!equals)
		return;
	*equals = '\0';
	set_value(file, trim_blanks(line), trim_blanks(equals + 1));
}

/* Why the file must not be believed, or NULL. */
static const char *why_not_trusted(int fd, uid_t owner)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "not a regular file";
	if (st.st_uid != owner)
		return "not owned by root";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "writable by others than root";
	if (st.st_size > CONFIG_BYTES_MAX)
		return "too long";
	return NULL;
}

static const char *why_not_opened(int error)
{
	if (error == ENOENT || error == ENOTDIR)
		return NULL;
	return error == ELOOP ? "a symbolic link" : "cannot be opened";
}

void config_read(const char *path, uid_t owner, struct config_file *file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				    O_NOCTTY);
	struct file_lines lines;
	char *line;

	*file = (struct config_file){ -1, -1, -1, -1, NULL, -1 };
	if (fd < 0) {
		file->refused = why_not_opened(errno);
		return;
	}
	file->refused = why_not_trusted(fd, owner);
	if (file->refused) {
		close(fd);
		return;
	}
	file_lines_begin(&lines, fd, CONFIG_BYTES_MAX);
	while ((line = file_lines_next(&lines)))
		read_line(file, line);
	file_lines_end(&lines);
}

/* ---- the environment ---- */

/* Return: @max for more than that, -1 for what is no number. */
static int env_number(const char *name, unsigned max)
{
	const char *text = secure_getenv(name);
	uint64_t value;

	if (!text || !*text || strspn(text, "0123456789") != strlen(text))
		return -1;
	if (!text_number(text, &value) || value > max)
		return (int)max;
	return (int)value;
}

/* A negative number is none. */
static unsigned least_of(int a, int b, unsigned fallback)
{
	unsigned from_a = a < 0 ? fallback : (unsigned)a;

	return b < 0 ? from_a : KT_MIN(from_a, (unsigned)b);
}

static enum config_energy stricter_energy(const struct config_file *file)
{
	const char *text = secure_getenv("KTASK_ENERGY");
	int from_env = text ? energy_of(text) : -1;
	int from_file = file->energy < 0 ? CONFIG_ENERGY_AUTO : file->energy;

	return (enum config_energy)KT_MAX(from_file, from_env);
}

void config_make(struct config *made, const struct config_file *file)
{
	int percent = env_number("KTASK_CAP_PERCENT", 100);
	int threads = env_number("KTASK_MAX_THREADS", CONFIG_THREADS_MAX);
	int idle_ms = env_number("KTASK_IDLE_MS", 3600000);

	made->file = *file;
	made->cap_percent =
		least_of(file->cap_percent, percent, CONFIG_CAP_PERCENT);
	made->node_cap_percent =
		least_of(file->node_cap_percent, percent, CONFIG_CAP_PERCENT);
	made->env_max_threads = threads > 0 ? (unsigned)threads : 0;
	made->max_threads = least_of(file->max_threads,
				     threads > 0 ? threads : -1, UINT_MAX);
	if (made->max_threads == UINT_MAX)
		made->max_threads = 0;
	made->energy = stricter_energy(file);
	made->ahead = file->ahead < 0 ? CONFIG_AHEAD_ON
				      : (enum config_ahead)file->ahead;
	made->idle_ms = idle_ms < 0 ? CONFIG_IDLE_MS : (unsigned)idle_ms;
}

static void read_all(void)
{
	struct config_file file;
	char path[FILE_PATH];

	snprintf(path, sizeof(path), "%s" CONFIG_PATH, file_root);
	config_read(path, 0, &file);
	config_make(&process_config, &file);
}

const struct config *config_get(void)
{
	keep_errno();

	pthread_once(&read_once, read_all);
	return &process_config;
}
