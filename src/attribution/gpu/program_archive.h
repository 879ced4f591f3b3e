/*
 * Program archive: what was remembered of programs on boards that are gone, for the boards that
 * come. What was measured on another board, or with another driver or power limit, counts less.
 */
#pragma once

#include "attribution/gpu/gpu.h"

enum { PROGRAM_ARCHIVE_MAX = SAMPLE_GPU_MAX }; /* boards; each takes some 40 KiB */

struct program_archive {
    struct archived_board *boards[PROGRAM_ARCHIVE_MAX]; /* the first one went first */
    size_t count;
};

void program_archive_done(struct program_archive *archive);

/* Keeps the memory of a board that goes. The board that went first makes room. Without memory it is
 * lost. */
void program_archive_keep(struct program_archive *archive, const struct gpu *gpu);

/* Moves everything to the end of another archive. */
void program_archive_move(struct program_archive *from, struct program_archive *to);

/* Packs the memory of all boards, those that are there (NULL: none) and those that are gone, or
 * unpacks all of it into an empty archive. */
void program_archive_code(struct program_archive *archive,
                          struct gpu *const gpus[static SAMPLE_GPU_MAX], struct coder *coder);

/* Gives a new board its own memory back, and that of other boards of its model. */
void program_archive_recall(const struct program_archive *archive, struct gpu *gpu);
