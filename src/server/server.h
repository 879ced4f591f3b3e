/*
 * Server: the process that talks to strangers, and nothing but listens. The collector starts it
 * from its own executable with the listeners, its job and one end of a channel, and starts another
 * when it dies. It knows nothing but pages.
 */
#pragma once

/*
 * The hidden verb `server`, as the collector starts it. Reads its job, enters the sandbox and
 * serves until the channel is at its end, then gives responses on their way 300 ms. Logs what went
 * wrong. Returns the exit status: 0, or 1 when it could not start or when the collector broke the
 * protocol.
 */
int server_main(void);
