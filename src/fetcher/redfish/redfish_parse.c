#include "fetcher/redfish/redfish_parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/json_reader.h"
#include "core/macros.h"
#include "sources/counter.h"

static const double MILLIWATTS_MAX = (double)PLAUSIBLE_POWER_MAX_UW / 1000;

bool redfish_is_path(const char *text)
{
    static const char root[] = "/redfish/v1", allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                          "0123456789/-._~%:@!$&'()*+,;=";
    size_t len = strlen(text);

    if (len >= REDFISH_PATH_BYTES || strncmp(text, root, sizeof(root) - 1) != 0)
        return false;
    if (len >= sizeof(root) && text[sizeof(root) - 1] != '/')
        return false;
    return strspn(text, allowed) == len && !strstr(text, "/.") && !strstr(text, "//");
}

static void put_path(const struct json *value, struct redfish_path *path)
{
    const char *text = json_text(value);

    path->text[0] = '\0';
    if (text && redfish_is_path(text))
        memcpy(path->text, text, strlen(text) + 1);
}

static void put_link(const struct json *object, const char *key, struct redfish_path *path)
{
    put_path(json_get(json_get(object, key), "@odata.id"), path);
}

int redfish_parse_root(struct span text, struct redfish_root *ret_root)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    put_link(root, "Chassis", &ret_root->chassis);
    put_link(json_get(root, "Links"), "Sessions", &ret_root->sessions);
    json_free(root);
    return 0;
}

int redfish_parse_members(struct span text, struct redfish_members *ret_members)
{
    struct json *root;
    const struct json *members;
    size_t count = 0;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    members = json_get(root, "Members");
    for (size_t i = 0; i < json_length(members) && count < REDFISH_MEMBERS_MAX; i++) {
        struct redfish_path *path = &ret_members->paths[count];

        put_path(json_get(json_at(members, i), "@odata.id"), path);
        count += path->text[0] != '\0';
    }
    ret_members->count = count;
    json_free(root);
    return 0;
}

/* Absent, UnavailableOffline, StandbyOffline ... are not; many a BMC says nothing. */
static bool is_in_use(const struct json *object)
{
    const char *state = json_text(json_get(json_get(object, "Status"), "State"));

    return !state || strcmp(state, "Enabled") == 0;
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* The baseboard of GPUs is a module that links to a system of its own. */
static enum redfish_rank rank_type(const char *type)
{
    static const char *const nodes[] = {"RackMount", "Blade",     "Sled",      "Tower",
                                        "Desktop",   "MiniTower", "StandAlone"};
    static const char *const unknown[] = {"Other", ""};

    if (!type || is_one_of(type, unknown, ARRAY_SIZE(unknown)))
        return REDFISH_UNKNOWN;
    return is_one_of(type, nodes, ARRAY_SIZE(nodes)) ? REDFISH_NODE : REDFISH_PART;
}

int redfish_parse_chassis(struct span text, struct redfish_chassis *ret_chassis)
{
    struct json *root;
    const struct json *systems;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    systems = json_get(json_get(root, "Links"), "ComputerSystems");
    put_path(json_get(json_at(systems, 0), "@odata.id"), &ret_chassis->system);
    put_link(root, "EnvironmentMetrics", &ret_chassis->environment);
    put_link(root, "PowerSubsystem", &ret_chassis->power_subsystem);
    put_link(root, "Power", &ret_chassis->power);
    ret_chassis->rank = json_length(systems) > 0 && is_in_use(root)
                            ? rank_type(json_text(json_get(root, "ChassisType")))
                            : REDFISH_NO_NODE;
    json_free(root);
    return 0;
}

int redfish_parse_subsystem(struct span text, struct redfish_path *ret_supplies)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    put_link(root, "PowerSupplies", ret_supplies);
    json_free(root);
    return 0;
}

int redfish_parse_supply(struct span text, struct redfish_supply *ret_supply)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    ret_supply->is_in_use = is_in_use(root);
    put_link(root, "Metrics", &ret_supply->metrics);
    json_free(root);
    return 0;
}

int redfish_parse_id(struct span text, struct redfish_path *ret_path)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    put_path(json_get(root, "@odata.id"), ret_path);
    json_free(root);
    return 0;
}

static int read_watts(const struct json *value, uint64_t *ret_power_mw)
{
    double watts;

    if (!json_double(value, &watts) || !(watts >= 0) || !(watts * 1000 < MILLIWATTS_MAX))
        return -ENODATA;
    *ret_power_mw = (uint64_t)(watts * 1000 + 0.5);
    return 0;
}

static int read_reading(struct span text, const char *key, uint64_t *ret_power_mw)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    r = read_watts(json_get(json_get(root, key), "Reading"), ret_power_mw);
    json_free(root);
    return r;
}

/* 0 W is what those say that do not know: a node that answers draws more. */
static int require_power(int r, uint64_t power_mw, uint64_t *ret_power_mw)
{
    if (r == 0 && power_mw == 0)
        r = -ENODATA;
    if (r == 0)
        *ret_power_mw = power_mw;
    return r;
}

int redfish_parse_environment(struct span text, uint64_t *ret_power_mw)
{
    uint64_t power_mw = 0;
    int r = read_reading(text, "PowerWatts", &power_mw);

    return require_power(r, power_mw, ret_power_mw);
}

int redfish_parse_supply_power(struct span text, uint64_t *ret_power_mw)
{
    return read_reading(text, "InputPowerWatts", ret_power_mw);
}

static bool is_related(const struct json *control, const char *system)
{
    const struct json *items = json_get(control, "RelatedItem");

    for (size_t i = 0; i < json_length(items); i++) {
        const char *path = json_text(json_get(json_at(items, i), "@odata.id"));

        if (path && system[0] && strcmp(path, system) == 0)
            return true;
    }
    return false;
}

/* Some list processors, memory and accelerators beside the whole: these have another context. Of
 * several that are left, the first that names the system, else the first. */
static int read_controls(const struct json *controls, const char *system, uint64_t *ret_power_mw)
{
    bool found = false;

    for (size_t i = 0; i < json_length(controls); i++) {
        const struct json *control = json_at(controls, i);
        const char *context = json_text(json_get(control, "PhysicalContext"));
        bool related = is_related(control, system);
        uint64_t power_mw = 0;
        int r = read_watts(json_get(control, "PowerConsumedWatts"), &power_mw);

        if ((context && strcmp(context, "Chassis") != 0) || !is_in_use(control) ||
            (found && !related) || require_power(r, power_mw, ret_power_mw) < 0)
            continue;
        found = true;
        if (related)
            break;
    }
    return found ? 0 : -ENODATA;
}

/* Of all that are in use, or of none: the rest would pass for the whole. */
static int sum_supplies(const struct json *supplies, uint64_t *ret_power_mw)
{
    uint64_t sum_mw = 0;

    for (size_t i = 0; i < json_length(supplies); i++) {
        const struct json *supply = json_at(supplies, i);
        uint64_t power_mw = 0;

        if (!is_in_use(supply))
            continue;
        if (read_watts(json_get(supply, "PowerInputWatts"), &power_mw) < 0)
            return -ENODATA;
        sum_mw += power_mw;
    }
    return require_power(sum_mw < PLAUSIBLE_POWER_MAX_UW / 1000 ? 0 : -ENODATA, sum_mw,
                         ret_power_mw);
}

int redfish_parse_power(struct span text, const char *system, uint64_t *ret_power_mw)
{
    struct json *root;
    int r = json_read(text, &root);

    if (r < 0)
        return r;
    r = read_controls(json_get(root, "PowerControl"), system, ret_power_mw);
    if (r < 0)
        r = sum_supplies(json_get(root, "PowerSupplies"), ret_power_mw);
    json_free(root);
    return r;
}

/* The message at the top is mostly "see the extended info". */
void redfish_parse_refusal(struct span text, char *why, size_t size_bytes)
{
    const struct json *error;
    struct json *root;
    const char *said;

    why[0] = '\0';
    if (json_read(text, &root) < 0)
        return;
    error = json_get(root, "error");
    said = json_text(json_get(json_at(json_get(error, "@Message.ExtendedInfo"), 0), "Message"));
    if (!said)
        said = json_text(json_get(error, "message"));
    snprintf(why, size_bytes, "%s", said ? said : "");
    json_free(root);
}
