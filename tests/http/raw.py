"""raw.py - requests as bytes, so that what no library would send can be sent."""
import json
import socket


class Raw:
    """One connection; requests may be sent before answers are read."""

    def __init__(self, web, timeout=60):
        host, port = web.host.rsplit(":", 1)
        self.host = web.host
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.rest = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def ask(self, method, path, body=None, headers=()):
        words = ["%s %s HTTP/1.1" % (method, path), "Host: " + self.host, *headers]
        data = b"" if body is None else json.dumps(body).encode() if not isinstance(body, bytes) else body
        if body is not None:
            words.append("Content-Length: %d" % len(data))
        self.send("\r\n".join(words).encode() + b"\r\n\r\n" + data)

    def more(self):
        piece = self.socket.recv(65536)
        self.rest += piece
        return piece

    def reply(self, is_head=False):
        """(status, headers, body), or None if the connection ends before a whole answer."""
        while b"\r\n\r\n" not in self.rest:
            if not self.more():
                return None
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        size = 0 if is_head else int(headers.get("content-length", 0))
        while len(self.rest) < size:
            if not self.more():
                return None
        body, self.rest = self.rest[:size], self.rest[size:]
        return int(lines[0].split()[1]), headers, body

    def is_closed(self):
        try:
            return not self.socket.recv(1)
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()
