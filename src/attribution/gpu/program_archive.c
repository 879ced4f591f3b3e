#include "attribution/gpu/program_archive.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* What a memory of another board of the same model is worth, in slots. Joules per unit of work of
 * one program differed by up to 11 % between two boards (measured, H200). */
static const double OTHER_BOARD_SLOTS = 3;

struct archived_board {
    char *uuid, *name, *driver;
    uint64_t power_limit_mw;
    struct programs programs, families;
};

static void archived_board_free(struct archived_board *board)
{
    if (!board)
        return;
    free(board->uuid);
    free(board->name);
    free(board->driver);
    free(board);
}

static void remove_board(struct program_archive *archive, size_t index)
{
    archived_board_free(archive->boards[index]);
    archive->count--;
    for (size_t i = index; i < archive->count; i++)
        archive->boards[i] = archive->boards[i + 1];
}

void program_archive_done(struct program_archive *archive)
{
    while (archive->count > 0)
        remove_board(archive, archive->count - 1);
}

/* Takes the board. */
static void add_board(struct program_archive *archive, struct archived_board *board)
{
    for (size_t i = archive->count; i-- > 0;)
        if (strcmp(archive->boards[i]->uuid, board->uuid) == 0)
            remove_board(archive, i);
    if (archive->count == PROGRAM_ARCHIVE_MAX)
        remove_board(archive, 0);
    archive->boards[archive->count++] = board;
}

void program_archive_keep(struct program_archive *archive, const struct gpu *gpu)
{
    struct archived_board *board;

    if (!gpu->learning || programs_count(&gpu->learning->intensity.programs) == 0)
        return;
    board = calloc(1, sizeof(*board));
    if (!board)
        return;
    board->uuid = strdup(gpu->uuid);
    board->name = strdup(gpu->name);
    board->driver = strdup(gpu->driver);
    board->power_limit_mw = gpu->power_limit_mw;
    board->programs = gpu->learning->intensity.programs;
    board->families = gpu->learning->intensity.families;
    if (board->uuid && board->name && board->driver)
        add_board(archive, board);
    else
        archived_board_free(board);
}

void program_archive_move(struct program_archive *from, struct program_archive *to)
{
    for (size_t i = 0; i < from->count; i++)
        add_board(to, from->boards[i]);
    from->count = 0;
}

/* What is remembered of a board counts this much on another; 0: nothing. */
static double worth_slots(const struct archived_board *board, const struct gpu *gpu)
{
    bool is_same = strcmp(board->uuid, gpu->uuid) == 0;
    double most = is_same ? PROGRAMS_SLOTS_MAX : OTHER_BOARD_SLOTS;

    if (gpu->name[0] != '\0' ? strcmp(board->name, gpu->name) != 0 : !is_same)
        return 0;
    return gpu_is_changed(gpu, board->driver, board->power_limit_mw)
               ? MIN(most, PROGRAMS_CHANGED_SLOTS)
               : most;
}

void program_archive_recall(const struct program_archive *archive, struct gpu *gpu)
{
    for (size_t i = 0; i < archive->count && gpu->learning; i++) {
        const struct archived_board *board = archive->boards[i];
        double slots = worth_slots(board, gpu);

        programs_adopt(&gpu->learning->intensity.programs, &board->programs, slots);
        programs_adopt(&gpu->learning->intensity.families, &board->families, slots);
    }
}
