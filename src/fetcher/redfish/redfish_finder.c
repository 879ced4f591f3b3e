#include "fetcher/redfish_finder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sources/counter.h"

/* More than one system behind one BMC is rare, and then it is two or three. */
enum {
    CANDIDATES_MAX = 8,
    QUESTIONS_MAX = 512, /* of a search, besides readings */
};

const char *const redfish_kind_words[] = {
    [REDFISH_ENVIRONMENT] = "EnvironmentMetrics",
    [REDFISH_SUPPLIES] = "inputs of the power supplies",
    [REDFISH_POWER] = "Power",
};

/* A search under way. */
struct search {
    struct redfish_session *session;
    struct redfish_members members; /* chassis */
    struct redfish_chassis candidates[CANDIDATES_MAX];
    size_t candidate_count;
    struct redfish_members supplies;
    unsigned questions;
    struct error why; /* of the last failure */
};

/* It is about this resource, and the next one may do; else the BMC itself is at fault. */
static bool is_tolerable(int r)
{
    return r == -ENODATA || r == -EPERM || r == -EBADMSG || r == -EREMOTEIO || r == -EFBIG;
}

static int fail(int r, const char *path, struct error *err)
{
    return error_set(err, r, "the BMC tells no power that a node can have at %.200s: %s", path,
                     strerror(-r));
}

static int read_one(struct redfish_session *session, const struct redfish_place *place,
                    size_t index, uint64_t *ret_power_mw, struct error *err)
{
    const char *path = place->paths[index].text;
    struct span text;
    int r = redfish_session_get(session, path, &text, err);

    if (r < 0)
        return r;
    switch (place->kind) {
    case REDFISH_ENVIRONMENT:
        r = redfish_parse_environment(text, ret_power_mw);
        break;
    case REDFISH_SUPPLIES:
        r = redfish_parse_supply_power(text, ret_power_mw);
        break;
    case REDFISH_POWER:
        r = redfish_parse_power(text, place->system.text, ret_power_mw);
        break;
    }
    return r < 0 ? fail(r, path, err) : 0;
}

int redfish_read(struct redfish_session *session, const struct redfish_place *place,
                 uint64_t *ret_power_mw, struct error *err)
{
    uint64_t sum_mw = 0;

    for (size_t i = 0; i < place->count; i++) {
        uint64_t power_mw = 0;
        int r = read_one(session, place, i, &power_mw, err);

        if (r < 0)
            return r;
        sum_mw += power_mw;
    }
    if (sum_mw == 0 || sum_mw >= PLAUSIBLE_POWER_MAX_UW / 1000)
        return fail(-ENODATA, place->paths[0].text, err);
    *ret_power_mw = sum_mw;
    return 0;
}

static int fetch(struct search *search, const char *path, struct span *ret_text)
{
    if (search->questions++ == QUESTIONS_MAX)
        return error_set(&search->why, -E2BIG,
                         "the BMC's resources have no end: the node's power was not found in %d",
                         QUESTIONS_MAX);
    return redfish_session_get(search->session, path, ret_text, &search->why);
}

static int try_path(struct search *search, enum redfish_kind kind, const struct redfish_path *path,
                    const struct redfish_path *system, struct redfish_place *place,
                    uint64_t *ret_power_mw)
{
    if (path->text[0] == '\0')
        return -ENODATA;
    place->kind = kind;
    place->system = *system;
    place->paths[0] = *path;
    place->count = 1;
    return redfish_read(search->session, place, ret_power_mw, &search->why);
}

static int add_supply(struct search *search, const char *path, struct redfish_place *place)
{
    struct redfish_supply supply = {0};
    struct span text;
    int r = fetch(search, path, &text);

    if (r == 0)
        r = redfish_parse_supply(text, &supply);
    if (r < 0 || !supply.is_in_use)
        return r;
    /* One that cannot be asked would be missing in the sum. */
    if (supply.metrics.text[0] == '\0' || place->count == REDFISH_SUPPLIES_MAX)
        return -ENODATA;
    place->paths[place->count++] = supply.metrics;
    return 0;
}

static int try_supplies(struct search *search, const struct redfish_path *subsystem,
                        struct redfish_place *place, uint64_t *ret_power_mw)
{
    struct redfish_path list = {""};
    struct span text;
    int r;

    if (subsystem->text[0] == '\0')
        return -ENODATA;
    r = fetch(search, subsystem->text, &text);
    if (r == 0)
        r = redfish_parse_subsystem(text, &list);
    if (r == 0)
        r = list.text[0] ? fetch(search, list.text, &text) : -ENODATA;
    if (r == 0)
        r = redfish_parse_members(text, &search->supplies);
    place->kind = REDFISH_SUPPLIES;
    place->count = 0;
    for (size_t i = 0; r == 0 && i < search->supplies.count; i++)
        r = add_supply(search, search->supplies.paths[i].text, place);
    if (r == 0 && place->count == 0)
        r = -ENODATA;
    return r < 0 ? r : redfish_read(search->session, place, ret_power_mw, &search->why);
}

static int try_chassis(struct search *search, const struct redfish_chassis *chassis,
                       struct redfish_place *place, uint64_t *ret_power_mw)
{
    int r = try_path(search, REDFISH_ENVIRONMENT, &chassis->environment, &chassis->system, place,
                     ret_power_mw);

    if (is_tolerable(r))
        r = try_supplies(search, &chassis->power_subsystem, place, ret_power_mw);
    if (is_tolerable(r))
        r = try_path(search, REDFISH_POWER, &chassis->power, &chassis->system, place, ret_power_mw);
    return r;
}

/* The first that is surely a node ends the search: the boards of eight GPUs are ninety chassis, and
 * each answer can take a second. */
static int look_at(struct search *search, const char *path, struct redfish_place *place,
                   uint64_t *ret_power_mw)
{
    struct redfish_chassis *chassis = &search->candidates[search->candidate_count];
    struct span text;
    int r = fetch(search, path, &text);

    if (r == 0)
        r = redfish_parse_chassis(text, chassis);
    if (r < 0)
        return r;
    if (chassis->rank == REDFISH_NODE)
        return try_chassis(search, chassis, place, ret_power_mw);
    if (chassis->rank != REDFISH_NO_NODE && search->candidate_count + 1 < CANDIDATES_MAX)
        search->candidate_count++;
    return -ENODATA;
}

static int try_candidates(struct search *search, struct redfish_place *place,
                          uint64_t *ret_power_mw)
{
    int r = -ENODATA;

    for (enum redfish_rank rank = REDFISH_UNKNOWN; rank < REDFISH_NO_NODE; rank++)
        for (size_t i = 0; i < search->candidate_count && is_tolerable(r); i++)
            if (search->candidates[i].rank == rank)
                r = try_chassis(search, &search->candidates[i], place, ret_power_mw);
    return r;
}

static int list_chassis(struct search *search, struct error *err)
{
    struct redfish_session *session = search->session;
    struct span text;
    int r = redfish_session_open(session, err);

    if (r < 0)
        return r;
    if (session->root.chassis.text[0] == '\0')
        return error_set(err, -ENODATA, "the BMC lists no chassis");
    r = redfish_session_get(session, session->root.chassis.text, &text, err);
    if (r < 0)
        return r;
    r = redfish_parse_members(text, &search->members);
    return r < 0 ? fail(r, session->root.chassis.text, err) : 0;
}

int redfish_find(struct redfish_session *session, struct redfish_place *ret_place,
                 uint64_t *ret_power_mw, struct error *err)
{
    _cleanup_free_ struct search *search = calloc(1, sizeof(*search));
    struct redfish_place place = {0};
    int r;

    if (!search)
        return error_set(err, -ENOMEM, "out of memory");
    search->session = session;
    r = list_chassis(search, err);
    if (r < 0)
        return r;
    r = -ENODATA;
    for (size_t i = 0; i < search->members.count && is_tolerable(r); i++)
        r = look_at(search, search->members.paths[i].text, &place, ret_power_mw);
    if (is_tolerable(r))
        r = try_candidates(search, &place, ret_power_mw);
    if (is_tolerable(r))
        return error_set(err, -ENODATA,
                         "none of the BMC's %zu chassis is the node and tells its power%s%.300s",
                         search->members.count, search->why.text[0] ? "; the last failure: " : "",
                         search->why.text);
    if (r < 0)
        return error_set(err, r, "%s", search->why.text[0] ? search->why.text : strerror(-r));
    *ret_place = place;
    return 0;
}
