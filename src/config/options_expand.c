/* Flags, and parts of their help, that come from the tables of sources, runtimes and providers. */
#include <stdio.h>

#include "config/emission_keys.h"
#include "config/option_type.h"
#include "config/options_private.h"
#include "emissions/provider.h"
#include "identity/runtime.h"
#include "sources/source.h"

/* --collector.NAME of each source that has one. */
bool options_expand_sources(size_t index, struct options_flag *ret_flag)
{
    for (size_t i = 0; source_table[i]; i++) {
        const struct source_ops *source = source_table[i];

        if (!source->flag || index-- > 0)
            continue;
        *ret_flag = (struct options_flag){
            .names = {source->flag},
            .fallback = "true",
            .help = source->help,
            .group = OPTIONS_SOURCES,
            .set = option_type_switch,
            .offset = offsetof(struct options, source_is_on[i]),
        };
        return true;
    }
    return false;
}

/* --NAME-socket of each container runtime. */
bool options_expand_runtimes(size_t index, struct options_flag *ret_flag)
{
    const struct runtime_ops *runtime = runtime_table[index];

    if (!runtime)
        return false;
    *ret_flag = (struct options_flag){
        .names = {runtime->flag},
        .placeholder = "PATH",
        .help = runtime->help,
        .group = OPTIONS_NODE,
        .set = option_type_socket_path,
        .offset = offsetof(struct options, runtime_sockets[index]),
        .max = OPTION_TYPE_SOCKET_PATH_MAX,
    };
    return true;
}

void options_describe_providers(const struct options_flag *flag, char *text, size_t size_bytes)
{
    char names[256];

    (void)flag;
    provider_list_names(names, sizeof(names));
    snprintf(text, size_bytes, "%s (queried over the network), owid, global, constant", names);
}

void options_describe_keys(const struct options_flag *flag, char *text, size_t size_bytes)
{
    struct emission_key keys[EMISSION_KEYS_MAX];
    size_t len = 0, count = emission_keys_list(keys);

    (void)flag;
    for (size_t i = 0; i < count && len < size_bytes; i++)
        len += (size_t)snprintf(text + len, size_bytes - len, "%s'%s: ...'", i > 0 ? ", " : "",
                                keys[i].name);
}
