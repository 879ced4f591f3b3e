/* The map from the pids of a trace to those of real processes. */
#include "pids.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

enum { PIDS_MAX = 1 << 16 };

static bool add_line(struct pids *pids, char *line)
{
    char *rest = line;
    struct pids_pair pair, *pairs;

    line[strcspn(line, "\n")] = '\0';
    if (!words_u64(words_next(&rest), &pair.from) || !words_u64(words_next(&rest), &pair.to))
        return false;
    pairs =
        pids->count < PIDS_MAX ? reallocarray(pids->pairs, pids->count + 1, sizeof(*pairs)) : NULL;
    if (!pairs)
        return false;
    pids->pairs = pairs;
    pids->pairs[pids->count++] = pair;
    return true;
}

static void read_pairs(struct pids *pids)
{
    FILE *file = fopen(pids->path, "re");
    char line[64];

    pids->count = 0;
    if (!file)
        return;
    while (fgets(line, sizeof(line), file) && add_line(pids, line))
        ;
    fclose(file);
}

void pids_refresh(struct pids *pids, const char *path)
{
    struct stat now = {0};
    bool same;

    if (!path) {
        pids_destroy(pids);
        return;
    }
    if (stat(path, &now) != 0)
        now = (struct stat){0};
    same = pids->path && strcmp(pids->path, path) == 0 && pids->stat.st_ino == now.st_ino &&
           pids->stat.st_size == now.st_size &&
           memcmp(&pids->stat.st_mtim, &now.st_mtim, sizeof(now.st_mtim)) == 0;
    if (same)
        return;
    pids_destroy(pids);
    pids->path = strdup(path);
    pids->stat = now;
    if (pids->path)
        read_pairs(pids);
}

uint32_t pids_map(const struct pids *pids, uint64_t pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->pairs[i].from == pid)
            return (uint32_t)pids->pairs[i].to;
    return (uint32_t)pid;
}

void pids_destroy(struct pids *pids)
{
    free(pids->path);
    free(pids->pairs);
    *pids = (struct pids){0};
}
