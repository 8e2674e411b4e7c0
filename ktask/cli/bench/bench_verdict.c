/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the figures are worth, in plain words: whether the speedups are settled,
 * what disturbed them, and what was done about that.
 */
#include <stdio.h>

#include "bench.h"
#include "cli/ui/size.h"
#include "cli/ui/text.h"

/* Less than that, of all CPUs, disturbs nobody. */
#define BUSY_PART 0.05
/* More than that leaves helpers little to do. */
#define MUCH_BUSY_PART 0.3

/* An interrupt may leave some rows a round behind. */
static unsigned nr_rounds(const struct bench_figures *figures, unsigned nr)
{
	unsigned rounds = figures[0].speedup.pairs;

	for (unsigned i = 1; i < nr; i++)
		if (figures[i].speedup.pairs < rounds)
			rounds = figures[i].speedup.pairs;
	return rounds;
}

/* The widest interval, as a part of its speedup. */
static double widest_interval(const struct bench_figures *figures, unsigned nr)
{
	double width = 0;

	for (unsigned i = 1; i < nr; i++)
		if (ratio_width(&figures[i].speedup) > width)
			width = ratio_width(&figures[i].speedup);
	return width;
}

static unsigned nr_hidden(const struct bench_figures *figures, unsigned nr)
{
	unsigned hidden = 0;

	for (unsigned i = 0; i < nr; i++)
		hidden += !figures[i].shown;
	return hidden;
}

static void print_too_few(unsigned rounds)
{
	printf("No speedup is shown (-): %u round%s ha%s no interval, %u have one.\n",
	       rounds, plural_suffix(rounds), rounds == 1 ? "s" : "ve",
	       RATIO_LEAST_PAIRS);
	if (rounds > 1)
		printf("In brackets: the least and the greatest ratio.\n");
}

static void print_precision(const struct bench *bench, double width)
{
	if (bench->settled)
		printf("Settled: the interval is %.0f %% of the speedup wide (asked: %.0f %%).\n",
		       100 * width, 100 * bench->precision);
	else
		printf("%s: the interval is %.0f %% of the speedup wide (%s %.0f %%).\n"
		       "Trust the interval, not the speedup.\n",
		       bench->runs ? "Not settled" : "TOO NOISY", 100 * width,
		       bench->runs ? "settled:" : "asked:",
		       100 * bench->precision);
}

static void print_outcome(const struct bench *bench,
			  const struct bench_figures *figures, unsigned nr)
{
	unsigned rounds = nr_rounds(figures, nr);
	char size[SIZE_TEXT];

	printf("%u round%s", rounds, plural_suffix(rounds));
	if (bench->work.op)
		printf(" of %s", size_text(size, bench->size_bytes));
	printf(" in %.0f s", bench->seconds);
	if (!bench->runs && bench->seconds > bench->max_seconds + 1)
		printf(" (more than asked: a round took that long)");
	printf(".\n");
	if (nr > 1 && rounds < RATIO_LEAST_PAIRS)
		print_too_few(rounds);
	else if (nr > 1)
		print_precision(bench, widest_interval(figures, nr));
	if (rounds >= RATIO_LEAST_PAIRS && nr_hidden(figures, nr))
		printf("No speedup is shown (-) where the rounds disagree which side is faster.\n");
}

/* Returns how many reasons for noise there were. */
static int print_load(const struct bench *bench)
{
	unsigned cpus = bench->machine.cpus;

	if (bench->load_unknown) {
		printf("What other processes did meanwhile is not known: "
		       "/proc/stat cannot be read.\n");
		return 0;
	}
	printf("Other processes used %.2f of %u CPUs meanwhile",
	       bench->others_cpus, cpus);
	if (bench->stolen_cpus >= 0.005)
		printf(", the host took %.2f (steal)", bench->stolen_cpus);
	printf(".\n");
	if (bench->others_cpus > MUCH_BUSY_PART * cpus)
		printf("Helper threads only use CPUs that idle: beside that "
		       "much work they gain little.\n");
	return (bench->others_cpus > BUSY_PART * cpus) +
	       (bench->stolen_cpus > BUSY_PART * cpus);
}

static int print_memory(const struct bench *bench)
{
	const struct renewal *renewal = &bench->renewal;

	if (!renewal->slow_runs && !bench->repeated_runs)
		return 0;
	printf("The host had taken free memory back; touching it cost up to "
	       "%.1f times\nas much as at best.  It was touched before each "
	       "run, untimed; this was slow\nin %u of %u runs, warm-ups included.\n",
	       renewal_factor(renewal), renewal->slow_runs, renewal->runs);
	if (bench->repeated_runs)
		printf("%u timed run%s met such memory all the same, and %s repeated.\n",
		       bench->repeated_runs,
		       plural_suffix(bench->repeated_runs),
		       bench->repeated_runs == 1 ? "was" : "were");
	return 1;
}

static void print_remedies(const struct bench *bench, int reasons)
{
	if (!reasons)
		printf("No cause can be seen from inside this machine.\n");
	printf("Done about the noise: each round ran every row, in changing "
	       "order, and rounds\nwere repeated while there was time.  "
	       "Better: an idle machine, --max-time %.0f.\n",
	       4 * bench->max_seconds);
}

void bench_print_verdict(const struct bench *bench,
			 const struct bench_figures *figures, unsigned nr)
{
	int reasons;

	if (!bench->unpaired)
		print_outcome(bench, figures, nr);
	reasons = print_load(bench) + print_memory(bench);
	if (!bench->unpaired && !bench->runs && !bench->settled && nr > 1)
		print_remedies(bench, reasons);
}
