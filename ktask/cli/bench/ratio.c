/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interval of a ratio: see ratio.h.
 *
 * It lies between two order statistics of the pairs' ratios.  How many of n
 * ratios are below the true median is binomial (n, 1/2), whatever their
 * distribution; so the k-th ratio from below and the k-th from above enclose
 * the median with probability 1 - 2 P(B < k).  We take the greatest k that
 * leaves at least 95 %.  Neither normal noise nor equal variances are assumed,
 * and a tenth of the pairs may be arbitrarily wrong.  Source: J.-Y. Le Boudec,
 * Performance Evaluation of Computer and Communication Systems, EPFL Press
 * 2010, theorem 2.1; H. A. David and H. N. Nagaraja, Order Statistics, 3rd
 * edition, Wiley 2003, section 7.1.
 *
 * A measurement that checks after each pair, and stops once the interval is narrow,
 * sometimes stops too early (Y. S. Chow and H. Robbins, On the asymptotic theory of
 * fixed-width sequential confidence intervals for the mean, 1965).  So with fewer pairs
 * than RATIO_SETTLED_PAIRS the interval never counts as settled.
 *
 * Behaves badly where the pairs depend on each other, as on a machine that
 * becomes slower throughout: the interval is too narrow then.
 */
#include <math.h>
#include <stdlib.h>

#include "ratio.h"

#define CONFIDENCE 0.95

static int compare_ratios(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* P(B = i) for B binomial (nr, 1/2); by logarithms, as 2^-nr may be 0. */
static double binomial_probability(unsigned nr, unsigned i)
{
	return exp(lgamma(nr + 1.0) - lgamma(i + 1.0) - lgamma(nr - i + 1.0) -
		   nr * log(2));
}

/* How many ratios are left out at each end; sets the confidence. */
static unsigned find_ends(unsigned nr, double *confidence)
{
	double outside = 2 * binomial_probability(nr, 0);
	unsigned left_out = 0;

	*confidence = 0;
	while (left_out < nr / 2 && 1 - outside >= CONFIDENCE) {
		*confidence = 1 - outside;
		outside += 2 * binomial_probability(nr, ++left_out);
	}
	return left_out ? left_out - 1 : 0;
}

struct ratio ratio_of(double *ratios, unsigned nr)
{
	struct ratio ratio = { .pairs = nr };
	unsigned end;

	qsort(ratios, nr, sizeof(*ratios), compare_ratios);
	/* Geometric, so that swapping the sides gives the inverse. */
	ratio.median = sqrt(ratios[(nr - 1) / 2] * ratios[nr / 2]);
	end = find_ends(nr, &ratio.confidence);
	ratio.low = ratios[end];
	ratio.high = ratios[nr - 1 - end];
	return ratio;
}

double ratio_width(const struct ratio *ratio)
{
	return (ratio->high - ratio->low) / ratio->median;
}

bool ratio_settled(const struct ratio *ratio, double width)
{
	return ratio->confidence > 0 && ratio->pairs >= RATIO_SETTLED_PAIRS &&
	       ratio_width(ratio) <= width;
}

bool ratio_disputed(const struct ratio *ratio)
{
	return ratio->low <= 1 && ratio->high >= 1;
}
