/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Results: tables of rows, each row a JSON object whose keys are the columns.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <jansson.h>

/* A new table; rows are added to the newest.  Both take the reference. */
void table_begin(const char *name, const char *title);
void table_add(json_t *row);

/* A cell; null where nothing was measured, as the ratio to what did nothing. */
json_t *table_number(double value);

void tables_print(void);

/* An array of objects with "name", "title" and "rows"; a borrowed reference. */
json_t *tables_json(void);
void tables_free(void);

#endif /* BENCH_TABLE_H */
