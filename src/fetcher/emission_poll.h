/* A poll of a provider of emission factors, as the job says, over the network. */
#pragma once

#include "client/http_client.h"
#include "core/error.h"
#include "emissions/poll.h"
#include "process/job.h"

/* The job and the client must outlive it. 0, -ENOKEY, or as poll_new, with what to do. */
int emission_poll_open(const struct emissions_job *job, size_t index, bool is_again,
                       struct http_client *client, struct poll **ret_poll, struct error *err);
