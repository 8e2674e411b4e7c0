/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Plots: see plot.h.  gnuplot is a child process that reads its script from a
 * pipe and writes the picture to its standard output, which is the file: no
 * path is ever quoted for it.  Titles are, and lose their control characters.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plot.h"
#include "cli/ui/message.h"
#include "cli/ui/target.h"
#include "cli/ui/text.h"

extern char **environ;

static const char *path_suffix(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot : "";
}

bool plot_suffix_ok(const char *path)
{
	return !strcmp(path_suffix(path), ".svg") ||
	       !strcmp(path_suffix(path), ".png");
}

/* In gnuplot's single quotes only the quote itself is special. */
static void write_quoted(FILE *script, const char *text)
{
	fputc('\'', script);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', script);
		fputc(iscntrl((unsigned char)*text) ? ' ' : *text, script);
	}
	fputc('\'', script);
}

static void write_data(FILE *script, const struct plot *plot)
{
	const struct plot_point *point;

	fputs("$data << END\n", script);
	for (unsigned i = 0; i < plot->nr_points; i++) {
		point = &plot->points[i];
		fprintf(script, "%u %.4f %.4f %.4f \"%.3g s\"\n",
			point->threads, point->speedup, point->low, point->high,
			point->seconds);
	}
	fputs("END\n", script);
}

static void write_style(FILE *script, const char *path)
{
	if (!strcmp(path_suffix(path), ".png"))
		fputs("set terminal pngcairo size 960,640 font 'Sans,11'\n",
		      script);
	else
		fputs("set terminal svg size 960,640 dynamic font 'Sans,14' "
		      "background rgb 'white'\n",
		      script);
	fputs("set border 3 lc rgb '#606060'\n"
	      "set tics nomirror\n"
	      "set grid ytics lc rgb '#e0e0e0' lt 1\n"
	      "set xlabel 'threads (the caller included)'\n"
	      "set key top left Left reverse\n",
	      script);
}

static void write_script(FILE *script, const char *path,
			 const struct plot *plot)
{
	unsigned first = plot->points[0].threads;
	unsigned last = plot->points[plot->nr_points - 1].threads;

	write_data(script, plot);
	write_style(script, path);
	fputs("set title ", script);
	write_quoted(script, plot->title);
	fputs(".\"\\n\".", script);
	write_quoted(script, plot->subtitle);
	if (plot->warning) {
		fputs(".\"\\n\".", script);
		write_quoted(script, plot->warning);
	}
	fputs(" noenhanced\n", script);
	fprintf(script, "set ylabel 'speedup over %u thread%s'\n", first,
		plural_suffix(first));
	fprintf(script, "set xrange [%g:%g]\nset yrange [0:%g]\n", first - 0.5,
		last + 0.5, 1.15 * last / first);
	/* A tic for each row while they fit, whole numbers otherwise. */
	if (last - first < 20)
		fputs("set xtics 1\n", script);
	fprintf(script,
		"plot x/%u lc rgb '#b0b0b0' dt 2 title 'ideal', \\\n"
		"  $data using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.8 "
		"lc rgb '#1b6ca8' title 'measured, with its interval', \\\n"
		"  $data using 1:2:5 with labels offset 0,-1.3 noenhanced notitle\n",
		first);
}

/*
 * Returns the child, its script on *script; or -errno.  @option: one argument,
 * or NULL.
 */
static pid_t start_gnuplot(int output, char *option, FILE **script)
{
	char name[] = "gnuplot";
	char *argv[] = { name, option, NULL };
	posix_spawn_file_actions_t actions;
	int error, ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	error = posix_spawnp(&child, name, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	if (error) {
		close(ends[1]);
		return -error;
	}
	*script = fdopen(ends[1], "w");
	return child;
}

/* Without a @plot gnuplot is started and ends, and draws nothing. */
static int run_gnuplot(int output, const char *path, const struct plot *plot)
{
	char version[] = "--version";
	FILE *script = NULL;
	int status;
	pid_t child = start_gnuplot(output, plot ? NULL : version, &script);

	if (child == -ENOENT)
		return say_fail("plotting to %s: gnuplot is not installed",
				path);
	if (child < 0)
		return say_error(-child, "plotting to %s: starting gnuplot",
				 path);
	if (script && plot)
		write_script(script, path, plot);
	if (script)
		fclose(script);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!script || status)
		return say_fail("plotting to %s: gnuplot failed", path);
	return 0;
}

int plot_verify(const char *path)
{
	int status, output, error = target_verify(path);

	if (error)
		return say_error(-error, "plotting to %s", path);
	output = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (output < 0)
		return say_error(errno, "plotting to %s: /dev/null", path);
	status = run_gnuplot(output, path, NULL);
	close(output);
	return status;
}

int plot_write(const char *path, const struct plot *plot)
{
	struct sigaction ignored = { .sa_handler = SIG_IGN }, former;
	int status;
	int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (output < 0)
		return say_error(errno, "plotting to %s", path);
	/* A gnuplot that dies must not take this process with it. */
	sigaction(SIGPIPE, &ignored, &former);
	status = run_gnuplot(output, path, plot);
	sigaction(SIGPIPE, &former, NULL);
	close(output);
	if (status)
		unlink(path);
	return status;
}
