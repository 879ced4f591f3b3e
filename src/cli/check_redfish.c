#include "cli/check_redfish.h"

#include <errno.h>
#include <inttypes.h>

#include "config/redfish_config.h"
#include "fetcher/redfish.h"

static const char *remedy_for(int error)
{
    switch (error) {
    case -EKEYREJECTED:
        return "give the certificate of who signed the BMC's, or the BMC's own, with "
               "--redfish.ca-file, or its fingerprint with --redfish.certificate-sha256";
    case -EACCES:
        return "look at the user and the password in the file of --redfish.credentials-file: a "
               "read-only account of the BMC will do";
    case -EPERM:
        return "give the account the BMC's privilege Login";
    case -ENODATA:
        return "none, if the BMC does not measure the node; else look for newer firmware";
    case -EINVAL:
        return "correct the flag";
    case -EBUSY:
        return "try again: the BMC is starting, or has no session left";
    default:
        return "look whether this node reaches the BMC's address and port";
    }
}

static int ask(const struct redfish_config *config, const struct redfish_flags *flags,
               struct redfish_place *ret_place, uint64_t *ret_power_mw, struct error *err)
{
    const struct http_trust_options trust_options = redfish_config_trust(config, flags);
    struct http_trust *trust;
    struct http_client *client;
    struct redfish_session session;
    char resolve[LOOKUP_TEXT_BYTES];
    int r = lookup_host("the BMC", config->host, config->port, resolve, err);

    if (r < 0)
        return r;
    r = http_trust_new(&trust_options, &trust, err);
    if (r < 0)
        return r;
    r = http_client_new(&client);
    if (r < 0) {
        http_trust_free(trust);
        return error_set(err, r, "out of memory");
    }
    redfish_session_init(&session, &(struct redfish_session_options){
                                       .client = client,
                                       .url = config->url,
                                       .resolve = resolve[0] ? resolve : NULL,
                                       .trust = trust,
                                       .user = config->user,
                                       .password = config->password,
                                   });
    r = redfish_find(&session, ret_place, ret_power_mw, err);
    redfish_session_close(&session);
    redfish_session_done(&session);
    http_client_free(client);
    http_trust_free(trust);
    return r;
}

void check_redfish(struct report *report, const struct options *options)
{
    const struct redfish_flags flags = redfish_flags_of(options);
    struct redfish_config config = {0};
    struct redfish_place place;
    struct error err = {""};
    uint64_t power_mw;
    int r;

    if (flags.url[0] == '\0') {
        report_add(report, "redfish", VERDICT_MISSING,
                   "not needed if IPMI works; otherwise set --redfish.url and "
                   "--redfish.credentials-file",
                   "no BMC is configured");
        return;
    }
    r = redfish_config_load(&flags, &config, &err);
    report->is_refused |= r < 0;
    if (r == 0)
        r = ask(&config, &flags, &place, &power_mw, &err);
    report->meters += r == 0;
    if (r == 0)
        report_add(report, "redfish", flags.insecure ? VERDICT_LIMITED : VERDICT_OK,
                   flags.insecure ? "leave out --redfish.insecure: anybody could answer" : NULL,
                   "the BMC tells the node's power: %" PRIu64 " W, %s, %.120s", power_mw / 1000,
                   redfish_kind_words[place.kind], place.paths[0].text);
    else
        report_add(report, "redfish", VERDICT_MISSING, remedy_for(r), "%s", err.text);
    redfish_config_done(&config);
}
