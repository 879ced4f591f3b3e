#include "model/snapshot.h"

enum { ARENA_CAP_BYTES = 512 << 20 };

void snapshot_init(struct snapshot *snapshot)
{
    *snapshot = (struct snapshot){0};
    arena_init(&snapshot->arena, ARENA_CAP_BYTES);
}

void snapshot_done(struct snapshot *snapshot)
{
    arena_done(&snapshot->arena);
    snapshot_init(snapshot);
}
