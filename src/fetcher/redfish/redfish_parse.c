#include "fetcher/redfish/redfish_parse.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "model/counter.h"

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

struct redfish_path redfish_id(const struct json *resource)
{
    const char *text = json_text(json_get(resource, "@odata.id"));
    struct redfish_path path = {""};

    if (text && redfish_is_path(text))
        memcpy(path.text, text, strlen(text) + 1);
    return path;
}

struct redfish_path redfish_link(const struct json *resource, const char *key)
{
    return redfish_id(json_get(resource, key));
}

bool redfish_is_in_use(const struct json *resource)
{
    const char *state = json_text(json_get(json_get(resource, "Status"), "State"));

    return !state || strcmp(state, "Enabled") == 0;
}

void redfish_parse_members(const struct json *collection, struct redfish_members *ret_members)
{
    const struct json *members = json_get(collection, "Members");

    ret_members->count = 0;
    for (size_t i = 0; i < json_length(members) && ret_members->count < REDFISH_MEMBERS_MAX; i++) {
        struct redfish_path *path = &ret_members->paths[ret_members->count];

        *path = redfish_id(json_at(members, i));
        ret_members->count += path->text[0] != '\0';
    }
}

/* The baseboard of GPUs is a module that links to a system of its own. */
static enum redfish_rank rank_type(const char *type)
{
    static const struct {
        const char *type;
        enum redfish_rank rank;
    } types[] = {
        {"RackMount", REDFISH_NODE},  {"Blade", REDFISH_NODE},    {"Sled", REDFISH_NODE},
        {"Tower", REDFISH_NODE},      {"Desktop", REDFISH_NODE},  {"MiniTower", REDFISH_NODE},
        {"StandAlone", REDFISH_NODE}, {"Other", REDFISH_UNKNOWN}, {"", REDFISH_UNKNOWN},
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strcmp(type ? type : "", types[i].type) == 0)
            return types[i].rank;
    return REDFISH_PART;
}

struct redfish_chassis redfish_parse_chassis(const struct json *resource)
{
    const struct json *systems = json_get(json_get(resource, "Links"), "ComputerSystems");

    return (struct redfish_chassis){
        .rank = json_length(systems) > 0 && redfish_is_in_use(resource)
                    ? rank_type(json_text(json_get(resource, "ChassisType")))
                    : REDFISH_NO_NODE,
        .system = redfish_id(json_at(systems, 0)),
        .environment = redfish_link(resource, "EnvironmentMetrics"),
        .power_subsystem = redfish_link(resource, "PowerSubsystem"),
        .power = redfish_link(resource, "Power"),
    };
}

static int parse_watts(const struct json *value, uint64_t *ret_power_mw)
{
    double watts;

    if (!json_double(value, &watts) || !(watts >= 0) || !(watts * 1000 < MILLIWATTS_MAX))
        return -ENODATA;
    *ret_power_mw = (uint64_t)(watts * 1000 + 0.5);
    return 0;
}

int redfish_parse_sensor(const struct json *resource, const char *key, uint64_t *ret_power_mw)
{
    return parse_watts(json_get(json_get(resource, key), "Reading"), ret_power_mw);
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

/* Some BMCs list processors, memory and accelerators beside the whole, with another context. The
 * first control that names the system wins, else the first. 0 W means that the BMC does not know:
 * a node that replies draws more. */
static int parse_controls(const struct json *controls, const char *system, uint64_t *ret_power_mw)
{
    int r = -ENODATA;

    for (size_t i = 0; i < json_length(controls); i++) {
        const struct json *control = json_at(controls, i);
        const char *context = json_text(json_get(control, "PhysicalContext"));
        bool related = is_related(control, system);
        uint64_t power_mw = 0;

        if ((context && strcmp(context, "Chassis") != 0) || !redfish_is_in_use(control) ||
            (r == 0 && !related) ||
            parse_watts(json_get(control, "PowerConsumedWatts"), &power_mw) < 0 || power_mw == 0)
            continue;
        *ret_power_mw = power_mw;
        r = 0;
        if (related)
            break;
    }
    return r;
}

/* All supplies in use, or none: a partial sum would pass for the whole. */
static int sum_supplies(const struct json *supplies, uint64_t *ret_power_mw)
{
    uint64_t sum_mw = 0;

    for (size_t i = 0; i < json_length(supplies); i++) {
        const struct json *supply = json_at(supplies, i);
        uint64_t power_mw = 0;

        if (!redfish_is_in_use(supply))
            continue;
        if (parse_watts(json_get(supply, "PowerInputWatts"), &power_mw) < 0)
            return -ENODATA;
        sum_mw += power_mw;
    }
    if (sum_mw == 0 || sum_mw >= PLAUSIBLE_POWER_MAX_UW / 1000)
        return -ENODATA;
    *ret_power_mw = sum_mw;
    return 0;
}

int redfish_parse_power(const struct json *resource, const char *system, uint64_t *ret_power_mw)
{
    if (parse_controls(json_get(resource, "PowerControl"), system, ret_power_mw) == 0)
        return 0;
    return sum_supplies(json_get(resource, "PowerSupplies"), ret_power_mw);
}

/* The message at the top is mostly "see the extended info". */
const char *redfish_error_message(const struct json *reply)
{
    const struct json *error = json_get(reply, "error");
    const struct json *info = json_at(json_get(error, "@Message.ExtendedInfo"), 0);
    const char *message = json_text(json_get(info, "Message"));

    if (!message)
        message = json_text(json_get(error, "message"));
    return message ? message : "";
}
