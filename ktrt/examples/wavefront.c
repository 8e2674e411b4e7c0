/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A table in which each cell needs those above and to the left (the length of
 * the longest common subsequence of two texts), in blocks: a task a block, no
 * barrier.
 *
 *	cc -o wavefront wavefront.c $(pkg-config --cflags --libs ktrt)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/runtime.h>

#define SIZE 2048
#define BLOCK 128
#define BLOCKS (SIZE / BLOCK)

static char first_text[SIZE], second_text[SIZE];
static short lengths_table[SIZE + 1][SIZE + 1];
/* Stand for the blocks; the first row and column for the edge. */
static char block_data[BLOCKS + 1][BLOCKS + 1];

struct block {
	int row, column;
};

static int do_block(void *arg)
{
	const struct block *block = arg;
	int row = block->row * BLOCK, column = block->column * BLOCK;

	for (int i = row + 1; i <= row + BLOCK; i++)
		for (int j = column + 1; j <= column + BLOCK; j++) {
			short left = lengths_table[i][j - 1],
			      up = lengths_table[i - 1][j];

			lengths_table[i][j] = left > up ? left : up;
			if (first_text[i - 1] == second_text[j - 1])
				lengths_table[i][j] =
					lengths_table[i - 1][j - 1] + 1;
		}
	return 0;
}

static int spawn_block(int row, int column)
{
	struct block block = { row, column };
	struct ktrt_dep deps[3] = {
		{ &block_data[row][column + 1], 0, KTRT_IN },
		{ &block_data[row + 1][column], 0, KTRT_IN },
		{ &block_data[row + 1][column + 1], 0, KTRT_OUT },
	};
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = 3;
	attr.arg_bytes = sizeof(block);
	return ktrt_spawn_attr(do_block, &block, &attr);
}

int main(void)
{
	int error = ktrt_start(NULL);

	for (int i = 0; i < SIZE; i++) {
		first_text[i] = (char)(rand() % 4);
		second_text[i] = (char)(rand() % 4);
	}
	for (int i = 0; i < BLOCKS * BLOCKS && !error; i++)
		error = spawn_block(i / BLOCKS, i % BLOCKS);
	if (!error)
		error = ktrt_wait();
	if (!error)
		error = ktrt_stop();
	if (error) {
		fprintf(stderr, "wavefront: %s\n", strerror(-error));
		return 1;
	}
	printf("%d of %d in common\n", lengths_table[SIZE][SIZE], SIZE);
	return 0;
}
