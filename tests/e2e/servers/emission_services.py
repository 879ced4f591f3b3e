"""Services that publish emission factors, as far as the asker asks them: Electricity Maps and RTE, both on one port, over
TLS. And the proxy of a site that lets nobody out but by it."""
import datetime
import http.server
import json
import select
import socket
import ssl
import threading
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

KEY = "hunter2-em"
USER, PASSWORD = "someone", "hunter2-proxy"


class Server:
    """For a with statement."""

    def __init__(self, handler):
        self.stopped = threading.Event()
        self.server = Listener(("127.0.0.1", 0), handler)
        self.server.owner = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        pass  # clients that hang up are what some tests are about


class EmissionServices(Server):
    def __init__(self, certificate):
        self.grams = 56.25
        self.status = 200
        self.hosts = []  # that were asked for, one for each question
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        super().__init__(Question)


class Question(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.services = self.server.owner
        self.request = self.services.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self):
        super().finish()
        self.request.close()

    def do_GET(self):
        url = urlsplit(self.path)
        zone = parse_qs(url.query).get("zone", [""])[0]
        now = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0)
        self.services.hosts.append(self.headers["Host"])
        if self.services.status != 200:
            self.reply(self.services.status, {"error": "not now"})
        elif url.path.startswith("/api/explore/"):
            self.reply(200, {"results": [{"taux_co2": self.services.grams, "date_heure": now.isoformat()}]})
        elif self.headers["auth-token"] != KEY:
            self.reply(401, {"error": f"no such key: {self.headers['auth-token']}"})
        else:
            self.reply(200, {"zone": zone, "carbonIntensity": self.services.grams, "datetime": now.isoformat(),
                             "emissionFactorType": "lifecycle", "isEstimated": True})

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Proxy(Server):
    """Takes whoever knows its password to `port`, whatever host was named."""

    def __init__(self, port):
        self.target_port = port
        self.tunnels = []  # "HOST:PORT" as they were asked for
        super().__init__(Tunnel)

    def url(self, password=PASSWORD):
        return f"http://{USER}:{password}@127.0.0.1:{self.port}"


class Tunnel(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        proxy = self.server.owner
        if self.headers["Proxy-Authorization"] != "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="site"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        proxy.tunnels.append(self.path)
        with socket.create_connection(("127.0.0.1", proxy.target_port)) as service:
            self.send_response(200)
            self.end_headers()
            self.carry(service)
        self.close_connection = True

    def carry(self, service):
        other = {self.connection: service, service: self.connection}
        while not self.server.owner.stopped.is_set():
            for end in select.select(list(other), [], [], 0.05)[0]:
                data = end.recv(65536)
                if not data:
                    return
                other[end].sendall(data)

    def log_message(self, *_):
        pass
