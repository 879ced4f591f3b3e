/* Replies of a BMC over Redfish. The text is parsed as every resource; then a BMC that replies with
 * it to every request is searched. The first byte is the status. Any bytes yield an error or a
 * power that a node can draw, and no request leads elsewhere. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fetcher/redfish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { POWER_MAX_MW = 50000000, REQUESTS_MAX = 20000 };

struct bmc {
    int status;
    struct span text;
    unsigned requests;
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

static void check_power(int r, const uint64_t *power_mw)
{
    check(r == -ENODATA || (r == 0 && *power_mw < POWER_MAX_MW));
}

static void check_resource(struct span text)
{
    static struct redfish_members members; /* it is large */
    struct redfish_chassis chassis;
    struct redfish_path path;
    uint64_t power_mw = UINT64_MAX;
    struct json *resource;

    if (json_read(text, &resource) < 0)
        return;
    redfish_parse_members(resource, &members);
    check(members.count <= REDFISH_MEMBERS_MAX);
    for (size_t i = 0; i < members.count; i++)
        check(redfish_is_path(members.paths[i].text));
    chassis = redfish_parse_chassis(resource);
    check(chassis.rank <= REDFISH_NO_NODE);
    check_path(&chassis.system);
    check_path(&chassis.environment);
    check_path(&chassis.power_subsystem);
    check_path(&chassis.power);
    path = redfish_id(resource);
    check_path(&path);
    path = redfish_link(resource, "Chassis");
    check_path(&path);
    check_power(redfish_parse_sensor(resource, "PowerWatts", &power_mw), &power_mw);
    check_power(redfish_parse_power(resource, "/redfish/v1/Systems/1", &power_mw), &power_mw);
    check(redfish_error_message(resource));
    json_free(resource);
}

/* In place of the client. */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    static const char url[] = "https://bmc:443/redfish/v1";
    struct bmc *bmc = (struct bmc *)client;

    (void)err;
    check(strncmp(request->url, url, sizeof(url) - 1) == 0);
    check(bmc->requests++ < REQUESTS_MAX);
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
                                       .client = (struct http_client *)&bmc,
                                   });
    r = redfish_find(&session, &place, &power_mw, &err);
    check(r < 0 ? err.text[0] != '\0' : power_mw > 0 && power_mw < POWER_MAX_MW);
    check(r < 0 || (place.count > 0 && place.count <= REDFISH_SUPPLIES_MAX));
    redfish_session_close(&session);
    redfish_session_done(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 201, 204, 301, 308, 400, 401, 403, 404, 503, 500};
    struct span text = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    check_resource(text);
    check_search(text, statuses[data[0] % (sizeof(statuses) / sizeof(statuses[0]))]);
    return 0;
}
