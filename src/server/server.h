/*
 * Server: the process that listens, and does nothing else. The collector starts it with the
 * listeners, its job and one end of a channel, and starts another when it dies. It knows nothing
 * but pages.
 */
#pragma once

/*
 * The hidden verb `server`. Reads its job, enters the sandbox and serves until the channel is
 * closed, then finishes responses for up to 300 ms. Logs what went wrong. Returns the exit status:
 * 0, or 1 when it could not start or when the collector broke the protocol.
 */
int server_main(void);
