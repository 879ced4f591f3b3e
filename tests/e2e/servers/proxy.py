"""A proxy for HTTPS: it makes tunnels to hosts that it alone knows."""
import select
import socket
from base64 import b64encode

from servers import https


class Proxy(https.Service):
    """`routes` are (address, port) by "HOST:PORT"; all other hosts are refused. So is who has not these credentials,
    if there are any: "USER:PASSWORD"."""

    def __init__(self, routes, credentials=None):
        self.routes, self.credentials = routes, credentials
        self.asked = []  # "HOST:PORT" of each that came
        super().__init__(Tunnel)

    def url_for(self, credentials):
        return f"http://{credentials}@127.0.0.1:{self.port}"

    def is_allowed(self, headers):
        basic = "Basic " + b64encode((self.credentials or "").encode()).decode()
        return not self.credentials or headers["Proxy-Authorization"] == basic


class Tunnel(https.Request):
    def handle_any(self):
        self.reply(b"", 405)

    def do_CONNECT(self):
        proxy = self.service
        if not proxy.is_allowed(self.headers):
            self.reply(b"", 407, {"Proxy-Authenticate": 'Basic realm="site"'})
            return
        proxy.asked.append(self.path)
        if self.path not in proxy.routes:
            self.reply(b"", 502)
            return
        with socket.create_connection(proxy.routes[self.path], 10) as other:
            self.send_response(200)
            self.end_headers()
            self.carry(other)
        self.close_connection = True

    def carry(self, other):
        peers = {self.connection: other, other: self.connection}
        while not self.service.stopped.is_set():
            for ready in select.select(list(peers), [], [], 0.05)[0]:
                data = ready.recv(65536)
                if not data:
                    return
                peers[ready].sendall(data)
