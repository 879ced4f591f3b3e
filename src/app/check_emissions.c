#include "app/check_emissions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/asker_inquiry.h"
#include "app/emissions.h"
#include "core/clock.h"
#include "core/macros.h"

static const char *remedy_for(int error)
{
    switch (error) {
    case -ENOKEY:
        return "give its key, see docs/emissions.md";
    case -EACCES:
        return "look at the key, whether its plan has this zone, and at firewalls";
    case -EKEYREJECTED:
        return "give who signed its certificate with --emissions.ca-file; a proxy may have put in "
               "its own";
    case -ENODATA:
        return "none: it has no value now, and may have one later";
    case -EBADMSG:
    case -ERANGE:
    case -EREMOTEIO:
        return "none here, if it is not a proxy's answer: it is asked again later";
    case -EBUSY:
        return "wait: it was asked too often";
    default:
        return "look whether this node reaches it, or needs https_proxy in its environment";
    }
}

static void put_factor(struct report *report, const char *what, const struct price_factor *factor,
                       const char *joint)
{
    report_add(report, what, VERDICT_OK, NULL,
               "%s%" PRIu64 ".%03" PRIu64 " g/kWh, %s%s%s, signal %s, basis %s", joint,
               factor->ug_per_kwh / 1000000, factor->ug_per_kwh / 1000 % 1000, factor->provider,
               factor->zone[0] ? ", zone " : "", factor->zone, price_signal_words[factor->signal],
               price_basis_words[factor->basis]);
}

static int ask(const struct emissions *emissions, size_t index, const struct asker_keys *keys,
               struct http_client *client, struct emission_factor *ret_factor, struct error *err)
{
    struct inquiry *inquiry = NULL;
    int r = asker_inquiry_open(&emissions->flags, index, keys, client, &inquiry, err);

    if (r == 0)
        r = inquiry_ask(inquiry, ret_factor, err);
    inquiry_free(inquiry);
    return r;
}

static void ask_all(struct report *report, struct emissions *emissions, struct http_client *client,
                    const struct asker_keys *keys)
{
    for (size_t i = 0; i < emissions->flags.count; i++) {
        struct emission_factor factor = {0};
        struct error err = {""};
        char what[64];
        int r = ask(emissions, i, keys, client, &factor, &err);

        snprintf(what, sizeof(what), "emissions: %s", emissions->flags.inquiries[i].provider);
        if (r < 0) {
            report_add(report, what, VERDICT_MISSING, remedy_for(r), "%.250s", err.text);
            continue;
        }
        emissions_take(emissions, i, &factor, clock_system.monotonic_us(&clock_system));
        report_add(report, what, VERDICT_OK, NULL, "it says %" PRIu64 ".%03" PRIu64 " g/kWh%s",
                   factor.mg_per_kwh / 1000, factor.mg_per_kwh % 1000,
                   factor.is_estimated ? ", which it may correct" : "");
    }
}

static void check_providers(struct report *report, struct emissions *emissions)
{
    struct http_client *client = NULL;
    struct asker_keys keys = {0};
    struct error err = {"out of memory"};
    int r = asker_keys_unseal(emissions->keys_fd, &keys);

    asker_keys_take_environment(&keys);
    if (r == 0)
        r = http_client_new(&client);
    if (r == 0)
        ask_all(report, emissions, client, &keys);
    else
        report_add(report, "emissions", VERDICT_MISSING, "correct the flag", "%.250s", err.text);
    http_client_free(client);
    asker_keys_wipe(&keys);
}

void check_emissions(struct report *report, const struct options *options)
{
    struct emissions emissions;
    struct error err = {""};

    if (!options->emissions_enabled) {
        report_add(report, "emissions", VERDICT_LIMITED, "leave out --emissions-enabled=false",
                   "switched off");
        return;
    }
    if (emissions_init(&emissions, options, &clock_system, &err) < 0) {
        report_add(report, "emissions", VERDICT_MISSING, "correct the flag", "%.250s", err.text);
        return;
    }
    if (emissions.flags.count > 0)
        check_providers(report, &emissions);
    (void)emissions_refresh(&emissions);
    if (options_is_given(options, "emissions.zone") || emissions.flags.count > 0 ||
        strcmp(emissions.in_force.provider, "global") != 0)
        put_factor(report, "emissions", &emissions.in_force, "in force: ");
    else
        report_add(report, "emissions", VERDICT_LIMITED,
                   "give --emissions.zone, --emissions.factor or --emissions.providers",
                   "the world's average, 473.007 g/kWh, is nobody's own");
}
