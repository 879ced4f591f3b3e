/*
 * The front's second job, with --kubernetes.api: a thread that asks the API server for names and
 * hands them to the collector. What goes wrong with it costs names; the front serves on.
 */
#pragma once

#include <sys/types.h>

#include "config/api_config.h"
#include "core/error.h"

struct front_api;

/*
 * Looks up the host and sets up the client; then the service account's directory becomes the root
 * of the process, so call it when every other file is open. It takes over `names_fd`, its end of
 * the channel for names, also on failure. 0 or -errno: then there are no names from the API.
 */
int front_api_open(const struct api_config *config, int names_fd, struct front_api **ret_api,
                   struct error *err);

/* Who may read the token. */
uid_t front_api_user(const struct front_api *api);

/* Starts the thread, which puts itself into its sandbox first. */
int front_api_start(struct front_api *api, struct error *err);

/* Ends the thread. Accepts NULL. */
void front_api_close(struct front_api *api);
