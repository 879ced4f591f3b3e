#include "fetcher/redfish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "model/counter.h"

enum {
    CANDIDATES_MAX = 8, /* two or three systems behind one BMC are rare already */
    REQUESTS_MAX = 512, /* of a search, without readings */
};

const char *const redfish_kind_words[] = {
    [REDFISH_ENVIRONMENT] = "EnvironmentMetrics",
    [REDFISH_SUPPLIES] = "inputs of the power supplies",
    [REDFISH_POWER] = "Power",
};

struct search {
    struct redfish_session *session;
    struct redfish_place place;
    uint64_t power_mw;
    struct redfish_members members, supplies;
    struct redfish_chassis candidates[CANDIDATES_MAX];
    size_t candidate_count;
    unsigned requests;
    struct error why; /* of the last failure */
};

/* The failure concerns one resource, and the next may do; else the BMC itself fails. */
static bool is_tolerable(int r)
{
    return r == -ENODATA || r == -EPERM || r == -EBADMSG || r == -EREMOTEIO || r == -EFBIG;
}

static int read_path(struct redfish_session *session, const struct redfish_place *place,
                     size_t index, uint64_t *ret_power_mw, struct error *err)
{
    const struct json *resource;
    int r = redfish_session_get(session, place->paths[index].text, &resource, err);

    if (r < 0)
        return r;
    if (place->kind == REDFISH_POWER)
        r = redfish_parse_power(resource, place->system.text, ret_power_mw);
    else
        r = redfish_parse_sensor(resource,
                                 place->kind == REDFISH_SUPPLIES ? "InputPowerWatts" : "PowerWatts",
                                 ret_power_mw);
    return r < 0 ? error_set(err, r, "the BMC reports no plausible power at %.200s",
                             place->paths[index].text)
                 : 0;
}

int redfish_read(struct redfish_session *session, const struct redfish_place *place,
                 uint64_t *ret_power_mw, struct error *err)
{
    uint64_t sum_mw = 0;

    for (size_t i = 0; i < place->count; i++) {
        uint64_t power_mw = 0;
        int r = read_path(session, place, i, &power_mw, err);

        if (r < 0)
            return r;
        sum_mw += power_mw;
    }
    /* 0 W means that the BMC does not know. */
    if (sum_mw == 0 || sum_mw >= PLAUSIBLE_POWER_MAX_UW / 1000)
        return error_set(err, -ENODATA, "the BMC reports no plausible power at %.200s",
                         place->paths[0].text);
    *ret_power_mw = sum_mw;
    return 0;
}

static int search_get(struct search *search, const struct redfish_path *path,
                      const struct json **ret_resource)
{
    if (path->text[0] == '\0')
        return -ENODATA;
    if (search->requests++ == REQUESTS_MAX)
        return error_set(&search->why, -E2BIG,
                         "the BMC has too many resources: %d did not lead to the node's power",
                         REQUESTS_MAX);
    return redfish_session_get(search->session, path->text, ret_resource, &search->why);
}

static int try_place(struct search *search)
{
    if (search->place.count == 0)
        return -ENODATA;
    return redfish_read(search->session, &search->place, &search->power_mw, &search->why);
}

static int try_path(struct search *search, enum redfish_kind kind, const struct redfish_path *path,
                    const struct redfish_path *system)
{
    search->place = (struct redfish_place){
        .kind = kind, .system = *system, .paths = {*path}, .count = path->text[0] ? 1 : 0};
    return try_place(search);
}

static int add_supply(struct search *search, const struct redfish_path *path)
{
    struct redfish_place *place = &search->place;
    const struct json *supply;
    struct redfish_path metrics;
    int r = search_get(search, path, &supply);

    if (r < 0 || !redfish_is_in_use(supply))
        return r;
    metrics = redfish_link(supply, "Metrics");
    /* One without metrics would be missing from the sum. */
    if (metrics.text[0] == '\0' || place->count == REDFISH_SUPPLIES_MAX)
        return -ENODATA;
    place->paths[place->count++] = metrics;
    return 0;
}

static int try_supplies(struct search *search, const struct redfish_path *subsystem)
{
    struct redfish_path list;
    const struct json *resource;
    int r = search_get(search, subsystem, &resource);

    if (r < 0)
        return r;
    list = redfish_link(resource, "PowerSupplies");
    r = search_get(search, &list, &resource);
    if (r < 0)
        return r;
    redfish_parse_members(resource, &search->supplies);
    search->place = (struct redfish_place){.kind = REDFISH_SUPPLIES};
    for (size_t i = 0; r == 0 && i < search->supplies.count; i++)
        r = add_supply(search, &search->supplies.paths[i]);
    return r < 0 ? r : try_place(search);
}

static int try_chassis(struct search *search, const struct redfish_chassis *chassis)
{
    int r = try_path(search, REDFISH_ENVIRONMENT, &chassis->environment, &chassis->system);

    if (is_tolerable(r))
        r = try_supplies(search, &chassis->power_subsystem);
    if (is_tolerable(r))
        r = try_path(search, REDFISH_POWER, &chassis->power, &chassis->system);
    return r;
}

/* The first chassis that is a node for certain ends the search: boards with eight GPUs have ninety
 * chassis, and each reply can take a second. The others are kept as candidates. */
static int visit_chassis(struct search *search, const struct redfish_path *path)
{
    struct redfish_chassis *chassis = &search->candidates[search->candidate_count];
    const struct json *resource;
    int r = search_get(search, path, &resource);

    if (r < 0)
        return r;
    *chassis = redfish_parse_chassis(resource);
    if (chassis->rank == REDFISH_NODE)
        return try_chassis(search, chassis);
    if (chassis->rank != REDFISH_NO_NODE && search->candidate_count + 1 < CANDIDATES_MAX)
        search->candidate_count++;
    return -ENODATA;
}

static int search_node(struct search *search)
{
    int r = -ENODATA;

    for (size_t i = 0; i < search->members.count && is_tolerable(r); i++)
        r = visit_chassis(search, &search->members.paths[i]);
    for (enum redfish_rank rank = REDFISH_UNKNOWN; rank < REDFISH_NO_NODE; rank++)
        for (size_t i = 0; i < search->candidate_count && is_tolerable(r); i++)
            if (search->candidates[i].rank == rank)
                r = try_chassis(search, &search->candidates[i]);
    return r;
}

int redfish_find(struct redfish_session *session, struct redfish_place *ret_place,
                 uint64_t *ret_power_mw, struct error *err)
{
    _cleanup_free_ struct search *search = calloc(1, sizeof(*search));
    const struct json *resource;
    int r;

    if (!search)
        return error_set(err, -ENOMEM, "out of memory");
    search->session = session;
    r = redfish_session_open(session, err);
    if (r < 0)
        return r;
    if (session->chassis.text[0] == '\0')
        return error_set(err, -ENODATA, "the BMC lists no chassis");
    r = redfish_session_get(session, session->chassis.text, &resource, err);
    if (r < 0)
        return r;
    redfish_parse_members(resource, &search->members);
    r = search_node(search);
    if (is_tolerable(r))
        return error_set(err, -ENODATA,
                         "none of the BMC's %zu chassis is the node and reports its power%s%.300s",
                         search->members.count, search->why.text[0] ? "; last error: " : "",
                         search->why.text);
    if (r < 0)
        return error_set(err, r, "%s", search->why.text[0] ? search->why.text : strerror(-r));
    *ret_place = search->place;
    *ret_power_mw = search->power_mw;
    return 0;
}
