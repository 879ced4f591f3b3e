#include "identity/cgroup_path.h"

#include <errno.h>
#include <string.h>

#include "identity/cgroup/walk.h"

/* The kernel gives paths of up to PATH_MAX - 1 bytes. A limit for the whole line would be below
 * that, and whoever may make cgroups could make one whose processes are nobody's. */
enum { PATH_BYTES_MAX = 4096 };

void cgroup_path_parse(struct span path, struct cgroup_place *ret_place)
{
    struct cgroup_walk walk;

    cgroup_walk(path, &walk);
    *ret_place = walk.place;
}

struct choice {
    struct cgroup_walk walk;
    bool made;
};

/* How much a place tells. */
static unsigned rank(const struct cgroup_place *place)
{
    unsigned level = 0;

    if (place->kind == CGROUP_SLURM)
        level = (place->step[0] != '\0') + (place->task[0] != '\0');
    return (unsigned)place->kind * 3 + level;
}

static void choose(struct choice *choice, const struct cgroup_walk *walk)
{
    unsigned old = rank(&choice->walk.place), new = rank(&walk->place);

    if (choice->made && (new < old || (new == old && walk->depth <= choice->walk.depth)))
        return;
    choice->walk = *walk;
    choice->made = true;
}

static bool is_job(enum cgroup_kind kind)
{
    return kind == CGROUP_SLURM || kind == CGROUP_LSF || kind == CGROUP_PBS;
}

struct choices {
    struct choice best;
    struct choice trusted; /* the best of those that only the node's own services can have named */
    struct choice job;     /* the best job of those */
};

static void choose_line(struct choices *choices, const struct cgroup_walk *walk)
{
    bool is_trusted = walk->place.scope[0] == '\0' && walk->place.kind >= CGROUP_NSPAWN;

    choose(&choices->best, walk);
    if (is_trusted)
        choose(&choices->trusted, walk);
    if (is_trusted && is_job(walk->place.kind))
        choose(&choices->job, walk);
}

/* A container that was started for a job, in a cgroup of its own. */
static void put_into_job(struct cgroup_place *container, const struct cgroup_place *job)
{
    memcpy(container->job, job->job, sizeof(container->job));
    memcpy(container->step, job->step, sizeof(container->step));
    memcpy(container->task, job->task, sizeof(container->task));
    container->has_uid = job->has_uid;
    container->uid = job->uid;
    container->holder = job->holder;
}

/*
 * With v1 a process is in one cgroup per hierarchy, and a user may have been given a part of one
 * hierarchy only. What was named in there counts if it is inside of what the trusted lines say, but
 * not against them, and never against a job.
 */
static const struct cgroup_place *decide(struct choices *choices)
{
    const struct choice *trusted = &choices->trusted, *job = &choices->job;
    struct cgroup_place *place = &choices->best.walk.place;

    if (trusted->made && place->scope[0] != '\0' &&
        (job->made || strcmp(place->scope, trusted->walk.boundary) != 0))
        place = &choices->trusted.walk.place;
    if (job->made && place->kind == CGROUP_CONTAINER && place->holder == CGROUP_ROOT)
        put_into_job(place, &job->walk.place);
    return place;
}

/* "HIERARCHY:CONTROLLERS:PATH"; a path may hold more colons. Of a line without two the rest is
 * empty. */
static struct span path_of_line(struct span line)
{
    span_cut(&line, ':');
    span_cut(&line, ':');
    return line;
}

static bool is_path(struct span path)
{
    span_strip_suffix(&path, " (deleted)");
    return path.len > 0 && path.len < PATH_BYTES_MAX && path.data[0] == '/';
}

int cgroup_file_parse(struct span text, struct cgroup_place *ret_place,
                      struct cgroup_file_faults *faults)
{
    bool is_file = text.len == 0 || text.data[0] != '/';
    struct choices choices = {0};
    struct span last = {NULL, 0};

    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');
        struct span path = is_file ? path_of_line(line) : line;
        struct cgroup_walk walk;

        if (!is_path(path)) {
            if (faults)
                faults->lines_skipped++;
            continue;
        }
        /* Most hierarchies of v1 say the same. */
        if (last.len == path.len && memcmp(last.data, path.data, path.len) == 0)
            continue;
        last = path;
        cgroup_walk(path, &walk);
        choose_line(&choices, &walk);
    }
    if (!choices.best.made)
        return -ENODATA;
    *ret_place = *decide(&choices);
    return 0;
}
