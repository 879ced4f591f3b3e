#include "attribution/gpu/program_archive.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* What a memory of another board of the same model is worth, in slots. Joules per unit of work of
 * one program differed by up to 11 % between two boards (measured, H200). */
static const double OTHER_BOARD_SLOTS = 3;

enum { TEXT_BYTES = 4096, PACKED_BOARDS_MAX = 2 * PROGRAM_ARCHIVE_MAX };

struct archived_board {
    char *uuid, *name, *driver;
    uint64_t power_limit_mw;
    struct program_memory programs;
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

static bool has_memory(const struct gpu *gpu)
{
    return gpu->programs && programs_count(&gpu->programs->exact) > 0;
}

/* The texts stay the GPU's. */
static struct archived_board describe_board(const struct gpu *gpu)
{
    return (struct archived_board){
        .uuid = gpu->uuid,
        .name = gpu->name,
        .driver = gpu->driver,
        .power_limit_mw = gpu->power_limit_mw,
        .programs = *gpu->programs,
    };
}

void program_archive_keep(struct program_archive *archive, const struct gpu *gpu)
{
    struct archived_board *board = has_memory(gpu) ? malloc(sizeof(*board)) : NULL;

    if (!board)
        return;
    *board = describe_board(gpu);
    board->uuid = strdup(gpu->uuid);
    board->name = strdup(gpu->name);
    board->driver = strdup(gpu->driver);
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
    for (size_t i = 0; i < archive->count && gpu->programs; i++) {
        const struct archived_board *board = archive->boards[i];
        double slots = worth_slots(board, gpu);

        programs_adopt(&gpu->programs->exact, &board->programs.exact, slots);
        programs_adopt(&gpu->programs->families, &board->programs.families, slots);
    }
}

static void code_board(struct archived_board *board, struct coder *coder)
{
    code_allocated_text(coder, &board->uuid, TEXT_BYTES);
    code_allocated_text(coder, &board->name, TEXT_BYTES);
    code_allocated_text(coder, &board->driver, TEXT_BYTES);
    board->power_limit_mw = code_u64(coder, board->power_limit_mw, UINT64_MAX);
    programs_code(&board->programs.exact, coder);
    programs_code(&board->programs.families, coder);
}

static void unpack_boards(struct program_archive *archive, struct coder *coder)
{
    size_t count = code_count(coder, 0, PACKED_BOARDS_MAX);

    for (size_t i = 0; i < count && !coder->in.is_broken; i++) {
        struct archived_board *board = calloc(1, sizeof(*board));

        if (!board) {
            coder_reject(coder);
            return;
        }
        code_board(board, coder);
        /* Absent texts are "". */
        if (!board->name)
            board->name = calloc(1, 1);
        if (!board->driver)
            board->driver = calloc(1, 1);
        if (board->uuid && board->name && board->driver && !coder->in.is_broken) {
            add_board(archive, board);
        } else {
            coder_reject(coder);
            archived_board_free(board);
        }
    }
}

void program_archive_code(struct program_archive *archive,
                          struct gpu *const gpus[static SAMPLE_GPU_MAX], struct coder *coder)
{
    size_t count = archive->count;

    if (coder_is_unpacking(coder)) {
        unpack_boards(archive, coder);
        return;
    }
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        count += gpus[i] && has_memory(gpus[i]);
    code_count(coder, count, PACKED_BOARDS_MAX);
    for (size_t i = 0; i < archive->count; i++)
        code_board(archive->boards[i], coder);
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (gpus[i] && has_memory(gpus[i])) {
            struct archived_board board = describe_board(gpus[i]);

            code_board(&board, coder);
        }
}
