/*
 * TLS handshakes that wait for the client.
 *
 * libmicrohttpd 0.9.75 takes a connection whose handshake waits for the client for one that can be
 * read, and asks to be run again at once: one half of a handshake would keep a core busy until its
 * deadline. So whoever is in the middle of one is suspended ("parked"), and we watch the socket.
 */
#pragma once

#include "net/connections.h"
#include "net/http_connection.h"

struct http_handshakes {
    int epoll_fd; /* of the parked ones; readable when one may go on; -1: no TLS, and none of them
                   */
};

int http_handshakes_open(struct http_handshakes *handshakes);
void http_handshakes_close(struct http_handshakes *handshakes);

/* Parks all that are in the middle of theirs: to be called when libmicrohttpd has run. */
void http_handshakes_park(struct http_handshakes *handshakes, struct connections *connections);

/* Lets those go on whose client did. */
void http_handshakes_resume(struct http_handshakes *handshakes);

/* Lets one go on, or all, whatever its client does: it is to end. */
void http_handshakes_unpark(struct http_handshakes *handshakes, struct http_connection *c);
void http_handshakes_unpark_all(struct http_handshakes *handshakes,
                                struct connections *connections);
