/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tables, kept as JSON; printed with the columns of their first row.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define CELL 64

static json_t *tables;

void table_begin(const char *name, const char *title)
{
	json_t *table = json_pack("{s:s s:s s:[]}", "name", name, "title",
				  title, "rows");

	if (!tables)
		tables = json_array();
	if (!table || json_array_append_new(tables, table))
		abort();
}

static json_t *get_newest(void)
{
	return json_array_get(tables, json_array_size(tables) - 1);
}

void table_add(json_t *row)
{
	if (!row ||
	    json_array_append_new(json_object_get(get_newest(), "rows"), row))
		abort();
}

json_t *table_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static const char *format_cell(const json_t *value, char text[CELL])
{
	if (json_is_string(value))
		snprintf(text, CELL, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, CELL, "%lld",
			 (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, CELL, "%.3f", json_real_value(value));
	else
		snprintf(text, CELL, "-");
	return text;
}

static int width_of(const json_t *rows, const char *key)
{
	size_t width = strlen(key), i;
	char text[CELL];
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		size_t len =
			strlen(format_cell(json_object_get(row, key), text));

		width = len > width ? len : width;
	}
	return (int)width;
}

/* Words to the left, figures to the right; a title of the column where there is
 * no row. */
static void print_line(const json_t *rows, const json_t *row)
{
	json_t *first = json_array_get(rows, 0), *value;
	const char *key;
	char text[CELL];

	json_object_foreach(first, key, value)
	{
		int width = width_of(rows, key);

		printf("%*s  ", json_is_string(value) ? -width : width,
		       row ? format_cell(json_object_get(row, key), text)
			   : key);
	}
	putchar('\n');
}

static void print_table(const json_t *table)
{
	json_t *rows = json_object_get(table, "rows"), *row;
	size_t i;

	printf("\n%s: %s\n", json_string_value(json_object_get(table, "name")),
	       json_string_value(json_object_get(table, "title")));
	print_line(rows, NULL);
	json_array_foreach(rows, i, row) print_line(rows, row);
}

void tables_print(void)
{
	json_t *table;
	size_t i;

	json_array_foreach(tables, i, table) print_table(table);
}

json_t *tables_json(void)
{
	return tables;
}

void tables_free(void)
{
	json_decref(tables);
	tables = NULL;
}
