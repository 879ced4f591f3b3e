/* An inquiry as the flags and keys tell it, over the network. */
#pragma once

#include "client/http_client.h"
#include "config/asker_flags.h"
#include "config/asker_keys.h"
#include "core/error.h"
#include "emissions/poll.h"

/* Flags, keys and client must outlive it. 0, -ENOKEY, or as poll_new, with what to do. */
int asker_inquiry_open(const struct asker_flags *flags, size_t index, const struct asker_keys *keys,
                       struct http_client *client, struct poll **ret_inquiry, struct error *err);
