"""What strangers send: refused, cut or answered, while scrapes go on and nothing leaks."""
import os
import resource
import select
import socket
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import H200_TRACE, SOON_S, Exporter, TestCase, ask, connect, exchange, wait_until

IDLE, DRIPPING = 1000, 300
CLOSE = b"\r\nHost: x\r\nConnection: close\r\n\r\n"
GOOD = b"GET /metrics HTTP/1.1" + CLOSE


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def statuses(answer):
    """The status of each response in these bytes, found by their lengths."""
    found = []
    while answer:
        head, separator, rest = answer.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        if not separator or not lines[0].startswith(b"HTTP/1."):
            raise AssertionError(f"not a response: {answer[:200]}")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        found.append(int(lines[0].split()[1]))
        answer = rest[int(headers[b"content-length"]):]
    return found


class Requests(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exporter = Exporter("--replay", H200_TRACE).__enter__()
        cls.addClassCleanup(cls.exporter.__exit__, None, None, None)
        cls.front = cls.exporter.server()

    def tearDown(self):
        """Whatever was sent: the same front still answers."""
        self.exporter.page()
        self.assertEqual(self.front, self.exporter.server())

    def send(self, request, *allowed):
        """Expects one of these statuses (None: closed without a word); returns the answer."""
        answer = exchange(self.exporter.address, request)
        if answer and not answer.startswith(b"HTTP/1."):
            self.fail(f"not HTTP: {answer[:200]}")
        status = int(answer.split()[1]) if answer else None
        self.assertIn(status, allowed, (request[:100], answer[:200]))
        return answer

    def send_each(self, requests, *allowed):
        """All at once, as some wait for the rest of a request until they are cut."""
        with ThreadPoolExecutor(len(requests)) as pool:
            list(pool.map(lambda request: self.send(request, *allowed), requests))

    def test_garbage_is_refused(self):
        self.send_each([
            b"\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", bytes(range(256)) + b"\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x5a" * 500 + b"\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"{}\r\n\r\n", b"GET\r\n\r\n", b"\n" * 5000,
            b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b" GET /metrics HTTP/1.1\r\n\r\n",
            b"GET /metrics HTTP/9.9\r\n\r\n", b"GET /metrics HTTP/1.1 x\r\nHost: x\r\n\r\n",
        ], 400, 404, 405, 505, None)

    def test_random_bytes_are_refused(self):
        self.send_each([os.urandom(size).replace(b"\n", b"x") + b"\r\n\r\n"
                        for size in [100] * 20 + [10_000] * 5 + [1_000_000]],
                       400, 404, 405, 414, 431, 505, None)

    def test_huge_headers_are_refused(self):
        for value in (20_000, 40_000, 1_000_000):
            self.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * value + b"\r\n\r\n",
                      431, None)

    def test_very_many_headers_are_refused(self):
        self.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20000 + b"\r\n", 431,
                  None)

    def test_a_huge_request_line_is_refused(self):
        for length in (40_000, 1_000_000):
            self.send(b"GET /" + b"a" * length + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, 431, None)

    def test_thousands_of_slashes_are_not_found(self):
        self.send(b"GET " + b"/" * 8000 + b" HTTP/1.1" + CLOSE, 404)
        self.send(b"GET " + b"/.." * 2000 + b"/metrics HTTP/1.1" + CLOSE, 404)

    def test_thousands_of_arguments_do_no_harm(self):
        self.send(b"GET /metrics?" + b"a=b&" * 2000 + b" HTTP/1.1" + CLOSE, 200, 414, 431,
                  None)

    def test_what_a_proxy_could_read_otherwise_is_refused(self):
        """RFC 9112. The answer is the last one: what follows is no request of its own."""
        line = b"GET /metrics HTTP/1.1"
        for request in (
                line + b"\r\nHost: a" + CLOSE,                                # two Hosts
                line + b"\r\nConnection: close\r\n\r\n",                      # none
                line + b"\r\nHost: a b\r\nConnection: close\r\n\r\n",
                b"GET /metrics%00x HTTP/1.1" + CLOSE,
                b"GET /metrics?a=%00x HTTP/1.1" + CLOSE,
                b"GET /metrics%zz HTTP/1.1" + CLOSE,
                b"GET %2fmetrics HTTP/1.1" + CLOSE,
                b"GET x:9400 HTTP/1.1" + CLOSE,
                b"GET  /metrics HTTP/1.1" + CLOSE,
                line + b"\r\nContent-Length: 0\r\nContent-Length: 0" + CLOSE,
                line + b"\r\nContent-Length: 0\r\nContent-Length: 5" + CLOSE + b"hello",
                line + b"\r\nContent-Length: 0\r\nTransfer-Encoding: chunked" + CLOSE + b"0\r\n\r\n",
                line + b"\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x" + CLOSE,
                line + b"\r\nContent-Length : 5" + CLOSE + b"hello",
                line + b"\r\nA\t: b" + CLOSE,
                line + b"\r\n: b" + CLOSE,
                line + b"\r\nA: b\r\n c" + CLOSE,                              # a folded line
                line + b"\r\n A: b" + CLOSE,
                line + b"\r\nA: \1" + CLOSE,
                line + b"\r\nHost: x\rA: b\r\nConnection: close\r\n\r\n",
                line + b"\r\nA: b\nC: d" + CLOSE,
                line + b"\nHost: x\nConnection: close\n\n",
                b"GET /metrics\0 HTTP/1.1" + CLOSE, b"GET /metrics\0x HTTP/1.1" + CLOSE,
                b"GET\0 /metrics HTTP/1.1" + CLOSE, b"GET /\0metrics HTTP/1.1" + CLOSE,
                line + b"\r\nA: b\0c" + CLOSE, line + b"\r\nA\0: b" + CLOSE):
            answer = self.send(request, 400, None)
            self.assertLessEqual(len(statuses(answer)), 1, request)

    def test_a_nul_before_the_method_is_no_method(self):
        self.send(b"\0GET / HTTP/1.1" + CLOSE, 400, 405, None)

    def test_an_absolute_uri_is_answered_as_its_path(self):
        self.send(b"GET http://x:9400/metrics HTTP/1.1" + CLOSE, 200)
        self.send(b"GET http://x/nowhere HTTP/1.1" + CLOSE, 404)

    def test_long_headers_that_come_in_pieces_are_read_whole(self):
        client = connect(self.exporter.address)
        self.addCleanup(client.close)
        request = b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 7000 + b"\r\nB: " + b"b" * 7000 + CLOSE
        for at in range(0, len(request), 1000):
            client.sendall(request[at:at + 1000])
        answer = b""
        while part := client.recv(1 << 20):
            answer += part
        self.assertEqual([200], statuses(answer))

    def test_a_request_with_a_body_is_refused(self):
        for method in (b"GET", b"POST", b"PUT"):
            answer = self.send(method + b" /metrics HTTP/1.1\r\nHost: x\r\n"
                               b"Content-Length: 5\r\n\r\nhello", 413)
            self.assertEqual([413], statuses(answer), "the body was taken for another request")

    def test_a_body_without_end_is_refused_before_it_comes(self):
        self.send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413)
        self.send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 413)

    def test_a_length_that_is_none_is_refused(self):
        for length in (b"-1", b"abc", b"99999999999999999999999999", b"0x10", b""):
            self.send(b"GET /metrics HTTP/1.1\r\nContent-Length: " + length + CLOSE, 400, 413, None)

    def test_a_request_cannot_be_smuggled_behind_another(self):
        answer = self.send(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GOOD, 400, 413)
        self.assertEqual(1, len(statuses(answer)))

    def test_methods_other_than_get_and_head_are_not_allowed(self):
        for method in (b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"BREW", b"get"):
            self.send(method + b" /metrics HTTP/1.1" + CLOSE, 405)

    def test_connect_is_not_allowed(self):
        self.send(b"CONNECT example.org:443 HTTP/1.1" + CLOSE, 400, 405)

    def test_pipelined_requests_are_answered_in_order(self):
        one = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"
        paths = [b"/metrics", b"/-/healthy", b"/nowhere", b"/metrics", b"/-/ready"] * 12
        answer = exchange(self.exporter.address, b"".join(one % path for path in paths) + GOOD)
        self.assertEqual([404 if path == b"/nowhere" else 200 for path in paths] + [200],
                         statuses(answer))

    def test_http_0_9_is_refused(self):
        self.assertNotIn(b"wattribute_", self.send(b"GET /metrics\r\n\r\n", 400, 505, None))

    def test_http_1_0_is_answered_and_closed(self):
        self.assertEqual([200], statuses(self.send(b"GET /metrics HTTP/1.0\r\n\r\n", 200)))

    def test_half_a_request_is_cut_after_a_few_seconds(self):
        halves = [connect(self.exporter.address) for _ in range(4)]
        for half, text in zip(halves, (b"", b"G", b"GET /metrics HTTP/1.1\r\nHo", GOOD[:-1])):
            self.addCleanup(half.close)
            half.sendall(text)
        began = time.monotonic()
        for half in halves:
            half.settimeout(8)
            self.assertEqual(b"", half.recv(1000))
        self.assertGreater(time.monotonic() - began, 1, "there must be time to send a request")

    def test_a_client_that_goes_away_in_the_middle_does_no_harm(self):
        for text in (b"", b"GET /met", GOOD):
            for _ in range(100):
                client = connect(self.exporter.address)
                # Reset instead of an orderly end.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.sendall(text)
                client.close()


class Crowd(TestCase):
    """A thousand idle and three hundred dripping connections, all from one address."""

    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = IDLE + DRIPPING + 200
        if soft < wanted:
            self.assertGreaterEqual(hard, wanted, "raise the limit of open files (ulimit -Hn)")
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def open_crowd(self, exporter, count):
        sockets = []
        for _ in range(count):
            sockets.append(connect(exporter.address))
            sockets[-1].setblocking(False)
            self.addCleanup(sockets[-1].close)
        return sockets

    def drip(self, sockets):
        """A byte from each; returns those that are still open."""
        alive = []
        for sock in sockets:
            try:
                sock.send(b"G")
                self.dripped.add(sock)
                alive.append(sock)
            except BlockingIOError:
                alive.append(sock)
            except OSError:
                pass
        return alive

    def closed(self, sockets):
        """Those that the other side has closed."""
        poll = select.poll()
        by_fd = {sock.fileno(): sock for sock in sockets}
        for fd in by_fd:
            poll.register(fd, select.POLLIN | select.POLLRDHUP)
        return [by_fd[fd] for fd, _ in poll.poll(0)]

    def test_scrapes_succeed_in_a_crowd_of_idle_and_dripping_connections_and_nothing_leaks(self):
        self.dripped = set()
        with Exporter("--replay", H200_TRACE) as exporter:
            front = exporter.server()
            exporter.page()
            before = descriptors(front)
            self.open_crowd(exporter, IDLE)
            began = time.monotonic()
            dripping = self.open_crowd(exporter, DRIPPING)
            self.assertGreater(descriptors(front), before + DRIPPING, "the crowd must be felt")
            scrapes = []
            next_drip = began

            def scrape_and_drip():
                nonlocal dripping, next_drip
                if time.monotonic() >= next_drip:
                    next_drip += 1
                    dripping = self.drip(dripping)
                # Five a second, so that they span what the crowd lives.
                if len(scrapes) < 20 and time.monotonic() >= began + len(scrapes) / 5:
                    asked = time.monotonic()
                    response = ask(exporter.address, timeout=10)
                    scrapes.append((response.status, time.monotonic() - asked))
                gone = self.closed(dripping)
                dripping = [sock for sock in dripping if sock not in gone]
                return len(scrapes) == 20 and not dripping
            wait_until("all drippers are cut", scrape_and_drip, 20)
            lived = time.monotonic() - began
            self.assertEqual(DRIPPING, len(self.dripped))
            self.assertEqual([200] * 20, [status for status, _ in scrapes])
            self.assertLess(max(seconds for _, seconds in scrapes), SOON_S)
            self.assertLess(lived, 15)
            wait_until("the descriptors are given back",
                       lambda: descriptors(front) <= before + 2, 15)
            self.assertEqual(front, exporter.server())

    def test_six_hundred_scrapes_that_are_asked_for_before_one_is_read_are_all_answered(self):
        clients = []
        with Exporter("--replay", H200_TRACE) as exporter:
            for _ in range(600):
                clients.append(connect(exporter.address))
                self.addCleanup(clients[-1].close)
                clients[-1].sendall(GOOD)
            for client in clients:
                answer = b""
                while part := client.recv(1 << 20):
                    answer += part
                self.assertEqual([200], statuses(answer))


if __name__ == "__main__":
    unittest.main()
