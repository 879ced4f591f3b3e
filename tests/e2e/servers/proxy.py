"""A proxy for HTTPS: it makes tunnels to hosts that it alone knows."""
import select
import socket
import socketserver
import threading
from base64 import b64encode


class Proxy:
    """For a with statement. `routes` are (address, port) by "HOST:PORT"; all other hosts are refused."""

    def __init__(self, routes, credentials=None):
        self.routes, self.credentials = routes, credentials
        self.asked = []  # "HOST:PORT" of each that came
        self.server = Listener(self)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def is_allowed(self, head):
        basic = "Basic " + b64encode((self.credentials or "").encode()).decode()
        return self.credentials is None or f"proxy-authorization: {basic}".lower() in head.lower()


class Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.proxy = proxy

    def handle_error(self, request, client_address):
        pass  # either side may hang up


class Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        proxy, head = self.server.proxy, "".join(iter(self.read_line, ""))
        method, target, _ = head.split(" ", 2)
        proxy.asked.append(target)
        if method != "CONNECT":
            self.refuse("405 Method Not Allowed")
        elif not proxy.is_allowed(head):
            self.refuse("407 Proxy Authentication Required")
        elif target not in proxy.routes:
            self.refuse("502 Bad Gateway")
        else:
            with socket.create_connection(proxy.routes[target], 10) as other:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self.carry(other)

    def read_line(self):
        """"": the head ends."""
        line = self.rfile.readline().decode("latin-1")
        return line if line.strip() else ""

    def refuse(self, status):
        self.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def carry(self, other):
        """Nobody speaks before the answer, so nothing waits in our buffer."""
        peers = {self.connection: other, other: self.connection}
        while True:
            for ready in select.select(list(peers), [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                peers[ready].sendall(data)
