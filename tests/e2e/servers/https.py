"""What doubles of HTTPS services share: a server on loopback, and the ways in which a peer can behave badly."""
import contextlib
import http.server
import ssl
import threading

DRIP_S = 0.1


class Service:
    """For a with statement. Without a certificate it speaks plain HTTP; with `garbage` nothing that is known. If it
    `hangs_up`, each request needs a connection of its own."""

    garbage = hangs_up = False

    def __init__(self, request_class, certificate=None, address=("127.0.0.1", 0), listening=True):
        self.connections = 0
        self.stopped = threading.Event()
        self.context = None
        self.present(certificate)
        self.server = Listener(self, request_class, address)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://{address[0]}:{self.port}"
        self.thread = None
        if listening:
            self.listen()

    def present(self, certificate):
        """This one, from the next connection on."""
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.context = context

    def listen(self):
        """Until then, connections are refused."""
        self.server.server_activate()
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        if self.thread:
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, service, request_class, address):
        super().__init__(address, request_class, bind_and_activate=False)
        self.service = service
        try:
            self.server_bind()
        except OSError:
            self.server_close()
            raise

    def handle_error(self, request, client_address):
        pass  # clients that hang up are what some tests are about


class Request(http.server.BaseHTTPRequestHandler):
    """`handle_any` answers. What is below can be its answer to anything."""

    protocol_version = "HTTP/1.1"

    def setup(self):
        self.service = self.server.service
        self.service.connections += 1
        if self.service.garbage:
            self.request.recv(65536)
            self.request.sendall(b"220 this is not the service that you look for\r\n" * 10)
            raise ConnectionAbortedError
        if self.service.context:
            self.request = self.service.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self):
        super().finish()
        self.request.close()

    def log_message(self, *_):
        pass

    def do(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with contextlib.suppress(OSError):
            self.handle_any()

    do_GET = do_POST = do_DELETE = do

    def reply(self, body, status=200, headers=None, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        if self.service.hangs_up:
            self.send_header("Connection", "close")
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def hang(self):
        """Never answers."""
        self.service.stopped.wait(60)

    def drip(self):
        """Answers, one byte in a while, for ever."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.service.stopped.wait(DRIP_S):
            self.wfile.write(b" ")
            self.wfile.flush()

    def break_off(self, body):
        """Says that more comes than does."""
        self.close_connection = True
        self.reply(body, length=len(body) + 1000)
