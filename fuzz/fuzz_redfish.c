/* What a BMC answers over Redfish. The text is read as every resource; then a BMC that says it to
 * every question is searched. The first byte is the status of its answers. Any bytes are an error
 * or what a node can draw, and no question leads elsewhere. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fetcher/redfish_finder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { POWER_MAX_MW = 50000000, QUESTIONS_MAX = 20000 };

struct bmc {
    int status;
    struct span text;
    unsigned questions;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_path(const struct redfish_path *path)
{
    check(memchr(path->text, '\0', sizeof(path->text)));
    check(path->text[0] == '\0' || redfish_is_path(path->text));
}

static void check_power(int r, const uint64_t *power_mw, uint64_t least_mw)
{
    check(r == -EBADMSG || r == -ENODATA || r == 0);
    check(r < 0 || (*power_mw >= least_mw && *power_mw < POWER_MAX_MW));
}

static void check_links(struct span text)
{
    static struct redfish_members members; /* it is large */
    struct redfish_root root;
    struct redfish_chassis chassis;
    struct redfish_supply supply;
    struct redfish_path path;

    if (redfish_parse_root(text, &root) < 0)
        return;
    check_path(&root.chassis);
    check_path(&root.sessions);
    check(redfish_parse_members(text, &members) == 0 && members.count <= REDFISH_MEMBERS_MAX);
    for (size_t i = 0; i < members.count; i++)
        check(redfish_is_path(members.paths[i].text));
    check(redfish_parse_chassis(text, &chassis) == 0 && chassis.rank <= REDFISH_NO_NODE);
    check_path(&chassis.system);
    check_path(&chassis.environment);
    check_path(&chassis.power_subsystem);
    check_path(&chassis.power);
    check(redfish_parse_subsystem(text, &path) == 0);
    check_path(&path);
    check(redfish_parse_supply(text, &supply) == 0);
    check_path(&supply.metrics);
    check(redfish_parse_id(text, &path) == 0);
    check_path(&path);
}

static void check_readings(struct span text)
{
    uint64_t power_mw = UINT64_MAX;
    char why[32];

    check_power(redfish_parse_environment(text, &power_mw), &power_mw, 1);
    check_power(redfish_parse_supply_power(text, &power_mw), &power_mw, 0);
    check_power(redfish_parse_power(text, "/redfish/v1/Systems/1", &power_mw), &power_mw, 1);
    redfish_parse_refusal(text, why, sizeof(why));
    check(strlen(why) < sizeof(why));
}

static int answer(void *context, const struct http_request *request, struct http_reply *ret_reply,
                  struct error *err)
{
    static const char url[] = "https://bmc:443/redfish/v1";
    struct bmc *bmc = context;

    (void)err;
    check(strncmp(request->url, url, sizeof(url) - 1) == 0);
    check(bmc->questions++ < QUESTIONS_MAX);
    ret_reply->status = bmc->status;
    buffer_done(&ret_reply->body);
    buffer_init(&ret_reply->body, request->max_bytes);
    buffer_bytes(&ret_reply->body, bmc->text.data, bmc->text.len);
    request->on_header(request->context, "X-Auth-Token", "token");
    request->on_header(request->context, "Location", "https://bmc:443/redfish/v1/x");
    return 0;
}

static void check_search(struct span text, int status)
{
    struct bmc bmc = {.status = status, .text = text};
    struct redfish_session session;
    struct redfish_place place;
    struct error err = {""};
    uint64_t power_mw = 0;
    int r;

    redfish_session_init(&session, &(struct redfish_session_options){
                                       .url = "https://bmc:443",
                                       .user = "u",
                                       .password = "p",
                                       .send = answer,
                                       .context = &bmc,
                                   });
    r = redfish_find(&session, &place, &power_mw, &err);
    check(r < 0 ? err.text[0] != '\0' : power_mw > 0 && power_mw < POWER_MAX_MW);
    check(r < 0 || (place.count > 0 && place.count <= REDFISH_SUPPLIES_MAX));
    redfish_session_close(&session, 1);
    redfish_session_done(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 201, 204, 301, 308, 400, 401, 403, 404, 503, 500};
    struct span text = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    check_links(text);
    check_readings(text);
    check_search(text, statuses[data[0] % (sizeof(statuses) / sizeof(statuses[0]))]);
    return 0;
}
