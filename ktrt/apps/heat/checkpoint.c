/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A rank's checkpoints, in a file each: a page that describes it, a table of
 * checksums, then the blocks, each padded to whole pages.
 *
 *   DIR/heat.RANK.part0, ...  those that are being written
 *   DIR/heat.RANK.0, .1       the last two that are whole
 *
 * A checkpoint takes its other name when it is whole and on the disk on every
 * rank (graph.c waits for that), in place of the last but one, whose file is
 * written to next.  So whatever
 * happens, one is there that all ranks have.  All that is read back is compared
 * with its checksum.
 *
 * Locking: the lock protects the list of free blocks (L).  Each task writes a block of
 * its own, with its checksum and its copy.  What is atomic is of all tasks.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/disk.h"
#include "heat.h"

#define MAGIC 0x31544145484b5459ull

struct header {
	uint64_t magic;
	uint32_t rows, cols, block; /* of the plate */
	uint32_t first, own_rows; /* the rank's part */
	uint32_t sweep;
	uint64_t table_sum; /* of the checksums */
	uint64_t header_sum; /* of what is above; last */
};

#define HEADER_SUMMED offsetof(struct header, header_sum)

/* A block's memory, while it is not in use. */
struct free_block {
	struct free_block *next;
};

struct checkpoints {
	const struct grid *grid;
	const struct heat_options *options;
	char whole[2][PATH_MAX];
	int rank;
	unsigned ended[2]; /* the sweep of each; 0: none */
	unsigned begun; /* how many */
	_Atomic uint64_t bytes; /* written */
	pthread_mutex_t lock;
	struct free_block *free_blocks; /* L */
};

struct checkpoint {
	struct checkpoints *all;
	char part[PATH_MAX];
	unsigned sweep;
	int fd;
	_Atomic int error; /* the first */
	uint64_t *sums; /* by block; in whole pages */
	double **copies; /* by block, from when it is taken to when written */
};

/* ---- places in the file ---- */

static size_t nr_blocks(const struct grid *grid)
{
	return (size_t)grid->block_rows * grid->block_cols;
}

static size_t block_bytes(const struct grid *grid)
{
	return disk_round((size_t)grid->block * grid->block * sizeof(double));
}

static size_t table_bytes(const struct grid *grid)
{
	return disk_round(nr_blocks(grid) * sizeof(uint64_t));
}

static uint64_t block_offset(const struct grid *grid, size_t index)
{
	return DISK_ALIGN + table_bytes(grid) + index * block_bytes(grid);
}

/* ---- cells to and from a block of the file ---- */

/* What is left of the @bytes is zeroed. */
static void pack_area(const struct grid *grid, const struct area *area,
		      double *to, size_t bytes)
{
	unsigned cols = area->col_end - area->col;
	char *end = (char *)to + bytes;

	for (unsigned row = area->row; row < area->row_end; row++, to += cols)
		memcpy(to, grid_row(grid, row) + area->col,
		       cols * sizeof(double));
	memset(to, 0, (size_t)(end - (char *)to));
}

static void unpack_area(const struct grid *grid, const struct area *area,
			const double *from)
{
	unsigned cols = area->col_end - area->col;

	for (unsigned row = area->row; row < area->row_end; row++, from += cols)
		memcpy(grid_row(grid, row) + area->col, from,
		       cols * sizeof(double));
}

/* ---- memory for blocks: as many as were ever written at once ---- */

static void *take_block(struct checkpoints *all)
{
	struct free_block *block;

	pthread_mutex_lock(&all->lock);
	block = all->free_blocks;
	if (block)
		all->free_blocks = block->next;
	pthread_mutex_unlock(&all->lock);
	return block ? block : disk_alloc(block_bytes(all->grid));
}

static void keep_block(struct checkpoints *all, void *memory)
{
	struct free_block *block = memory;

	pthread_mutex_lock(&all->lock);
	block->next = all->free_blocks;
	all->free_blocks = block;
	pthread_mutex_unlock(&all->lock);
}

/* ---- writing ---- */

int checkpoints_open(struct checkpoints **all, const struct grid *grid,
		     const struct heat_options *options, int rank)
{
	struct checkpoints *new = calloc(1, sizeof(*new));
	const char *dir = options->app.dir;

	if (!new)
		return app_fail(-ENOMEM, "preparing checkpoints");
	pthread_mutex_init(&new->lock, NULL);
	new->grid = grid;
	new->options = options;
	new->rank = rank;
	for (int i = 0; i < 2; i++)
		snprintf(new->whole[i], PATH_MAX, "%s/heat.%d.%d", dir, rank,
			 i);
	*all = new;
	return 0;
}

static void part_path(const struct checkpoints *all, unsigned nr, char *path)
{
	snprintf(path, PATH_MAX, "%s/heat.%d.part%u", all->options->app.dir,
		 all->rank, nr);
}

void checkpoints_close(struct checkpoints *all)
{
	char path[PATH_MAX];
	struct free_block *block;

	if (!all)
		return;
	for (unsigned i = 0; i < all->begun && i < all->options->pending; i++) {
		part_path(all, i, path);
		unlink(path);
	}
	while ((block = all->free_blocks)) {
		all->free_blocks = block->next;
		free(block);
	}
	pthread_mutex_destroy(&all->lock);
	free(all);
}

unsigned checkpoints_last(const struct checkpoints *all)
{
	return all->ended[all->ended[1] > all->ended[0]];
}

uint64_t checkpoints_bytes(const struct checkpoints *all)
{
	return all->bytes;
}

int checkpoint_begin(struct checkpoints *all, unsigned sweep,
		     struct checkpoint **checkpoint)
{
	struct checkpoint *new = calloc(1, sizeof(*new));
	int error;

	if (!new)
		return app_fail(-ENOMEM, "beginning a checkpoint");
	new->all = all;
	new->sweep = sweep;
	part_path(all, all->begun++ % all->options->pending, new->part);
	new->sums = disk_alloc(table_bytes(all->grid));
	new->copies = calloc(nr_blocks(all->grid), sizeof(*new->copies));
	new->fd = disk_open(new->part, !all->options->app.buffered, true);
	error = !new->sums || !new->copies ? -ENOMEM : new->fd;
	if (error >= 0)
		error = disk_reserve(
			new->fd, block_offset(all->grid, nr_blocks(all->grid)));
	if (error) {
		app_fail(error, "creating %s", new->part);
		if (new->fd >= 0) {
			unlink(new->part);
			close(new->fd);
		}
		free(new->copies);
		free(new->sums);
		free(new);
		return error;
	}
	*checkpoint = new;
	return 0;
}

static int note_error(struct checkpoint *checkpoint, int error)
{
	int none = 0;

	if (error &&
	    atomic_compare_exchange_strong(&checkpoint->error, &none, error))
		app_fail(error, "writing %s", checkpoint->part);
	return error;
}

static size_t block_index(const struct grid *grid, unsigned row, unsigned col)
{
	return (size_t)row * grid->block_cols + col;
}

int checkpoint_copy(struct checkpoint *checkpoint, unsigned row, unsigned col)
{
	const struct grid *grid = checkpoint->all->grid;
	size_t index = block_index(grid, row, col);
	size_t bytes = block_bytes(grid);
	struct area area = grid_area(grid, row, col);
	double *copy;

	/* Its end would be lost anyway. */
	if (checkpoint->error)
		return checkpoint->error;
	copy = take_block(checkpoint->all);
	if (!copy)
		return note_error(checkpoint, -ENOMEM);
	pack_area(grid, &area, copy, bytes);
	checkpoint->sums[index] = disk_sum(copy, bytes);
	checkpoint->copies[index] = copy;
	return 0;
}

int checkpoint_write(struct checkpoint *checkpoint, unsigned row, unsigned col)
{
	const struct grid *grid = checkpoint->all->grid;
	size_t index = block_index(grid, row, col);
	size_t bytes = block_bytes(grid);
	double *copy = checkpoint->copies[index];
	int error = checkpoint->error;

	/* Taken after something had failed already. */
	if (!copy)
		return error;
	if (!error)
		error = disk_write(checkpoint->fd, copy, bytes,
				   block_offset(grid, index));
	keep_block(checkpoint->all, copy);
	checkpoint->copies[index] = NULL;
	if (!error)
		checkpoint->all->bytes += bytes;
	return note_error(checkpoint, error);
}

int checkpoint_block(struct checkpoint *checkpoint, unsigned row, unsigned col)
{
	int error = checkpoint_copy(checkpoint, row, col);

	return error ? error : checkpoint_write(checkpoint, row, col);
}

static int write_header(struct checkpoint *checkpoint)
{
	const struct checkpoints *all = checkpoint->all;
	const struct grid *grid = all->grid;
	struct header *header = disk_alloc(DISK_ALIGN);
	size_t bytes = table_bytes(grid);
	int error;

	if (!header)
		return -ENOMEM;
	*header = (struct header){
		.magic = MAGIC,
		.rows = all->options->rows,
		.cols = grid->cols,
		.block = grid->block,
		.first = grid->first,
		.own_rows = grid->rows,
		.sweep = checkpoint->sweep,
		.table_sum = disk_sum(checkpoint->sums, bytes),
	};
	header->header_sum = disk_sum(header, HEADER_SUMMED);
	error = disk_write(checkpoint->fd, checkpoint->sums, bytes, DISK_ALIGN);
	if (!error)
		error = disk_write(checkpoint->fd, header, DISK_ALIGN, 0);
	free(header);
	return error;
}

int checkpoint_seal(struct checkpoint *checkpoint)
{
	int error = checkpoint->error;

	if (!error)
		error = note_error(checkpoint, write_header(checkpoint));
	if (!error && fsync(checkpoint->fd))
		error = note_error(checkpoint, -errno);
	return error;
}

int checkpoint_end(struct checkpoint *checkpoint)
{
	struct checkpoints *all = checkpoint->all;
	int older = all->ended[1] < all->ended[0];
	int error = checkpoint->error;

	if (!error)
		error = note_error(checkpoint, disk_swap(checkpoint->part,
							 all->whole[older]));
	if (error) {
		unlink(checkpoint->part);
	} else {
		all->ended[older] = checkpoint->sweep;
		/* The other file is from a run that this one does not continue. */
		if (!all->ended[!older])
			unlink(all->whole[!older]);
	}
	close(checkpoint->fd);
	free(checkpoint->copies);
	free(checkpoint->sums);
	free(checkpoint);
	return error;
}

/* ---- reading ---- */

static bool header_fits(const struct checkpoints *all,
			const struct header *header)
{
	const struct grid *grid = all->grid;

	return header->magic == MAGIC &&
	       header->header_sum == disk_sum(header, HEADER_SUMMED) &&
	       header->rows == all->options->rows &&
	       header->cols == grid->cols && header->block == grid->block &&
	       header->first == grid->first && header->own_rows == grid->rows &&
	       header->sweep;
}

/*
 * The sweep of the checkpoint in a file; 0: none that fits.
 *
 * A file that exists but cannot be read is an error: a run that went on without it would
 * overwrite it.
 */
static int read_header(const struct checkpoints *all, const char *path,
		       struct header *header, unsigned *sweep)
{
	int fd = disk_open(path, false, false);
	int error = fd < 0 ? fd : disk_read(fd, header, sizeof(*header), 0);

	if (fd >= 0)
		close(fd);
	*sweep = !error && header_fits(all, header) ? header->sweep : 0;
	return error == -ENOENT || error == -ENODATA ? 0 : error;
}

static int read_blocks(int fd, const struct grid *grid, const uint64_t *sums,
		       double *copy)
{
	size_t bytes = block_bytes(grid), index = 0;

	for (unsigned row = 0; row < grid->block_rows; row++)
		for (unsigned col = 0; col < grid->block_cols; col++, index++) {
			struct area area = grid_area(grid, row, col);
			int error = disk_read(fd, copy, bytes,
					      block_offset(grid, index));

			if (error)
				return error;
			if (disk_sum(copy, bytes) != sums[index])
				return -EILSEQ;
			unpack_area(grid, &area, copy);
		}
	return 0;
}

static int load_checkpoint(const struct checkpoints *all, const char *path,
			   const struct header *header, struct grid *grid)
{
	int fd = disk_open(path, !all->options->app.buffered, false);
	uint64_t *sums = disk_alloc(table_bytes(grid));
	double *copy = disk_alloc(block_bytes(grid));
	int error = fd < 0 ? fd : !sums || !copy ? -ENOMEM : 0;

	if (!error)
		error = disk_read(fd, sums, table_bytes(grid), DISK_ALIGN);
	if (!error && disk_sum(sums, table_bytes(grid)) != header->table_sum)
		error = -EILSEQ;
	if (!error)
		error = read_blocks(fd, grid, sums, copy);
	if (fd >= 0)
		close(fd);
	free(sums);
	free(copy);
	return error;
}

int checkpoints_newest(const struct checkpoints *all, unsigned *newest)
{
	struct header header;
	unsigned sweep;
	int error;

	*newest = 0;
	for (int i = 0; i < 2; i++) {
		error = read_header(all, all->whole[i], &header, &sweep);
		if (error)
			return app_fail(error, "reading %s", all->whole[i]);
		if (sweep > *newest)
			*newest = sweep;
	}
	return 0;
}

int checkpoints_load(struct checkpoints *all, struct grid *grid, unsigned sweep)
{
	struct header header;
	int error = -ENOENT;

	for (int i = 0; i < 2 && error == -ENOENT; i++) {
		unsigned found;

		all->ended[0] = all->ended[1] = 0;
		if (read_header(all, all->whole[i], &header, &found) ||
		    found != sweep)
			continue;
		all->ended[i] = sweep;
		error = load_checkpoint(all, all->whole[i], &header, grid);
	}
	if (error)
		app_fail(error, "reading the checkpoint of sweep %u in %s",
			 sweep, all->options->app.dir);
	return error;
}
