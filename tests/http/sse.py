"""sse.py - a subscriber to server-sent events that knows what it has seen."""
import json
import selectors
import socket


class Event:
    def __init__(self, lines):
        self.id = self.kind = None
        data = []
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.id = value
            elif name == "event":
                self.kind = value
            elif name == "data":
                data.append(value)
        self.entry = json.loads("\n".join(data))

    def __repr__(self):
        return "%s %r" % (self.id, self.entry)


class Stream:
    """A raw connection, read as far as it is asked for."""

    def __init__(self, web, path="/v1/events", last=None, receive_buffer=None, method="GET"):
        host, port = web.host.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(60)
        self.socket.connect((host, int(port)))
        words = "%s %s HTTP/1.1\r\nHost: %s\r\n" % (method, path, web.host)
        if last is not None:
            words += "Last-Event-ID: %s\r\n" % last
        self.socket.sendall((words + "\r\n").encode())
        self.raw, self.text, self.comments, self.ended = b"", b"", 0, False

    def more(self):
        """Take what the socket has; False at its end."""
        piece = self.socket.recv(65536)
        self.raw += piece
        return bool(piece)

    def head(self):
        while b"\r\n\r\n" not in self.raw:
            assert self.more(), "the connection ended before its head: %r" % self.raw
        head, _, self.raw = self.raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        return self

    def open(self):
        """Wait until the server says that the stream is open: its first comment."""
        self.head()
        assert self.status == 200 and self.headers["content-type"] == "text/event-stream", (self.status, self.headers)
        self.beat()
        return self

    def unchunk(self):
        while True:
            size, found, rest = self.raw.partition(b"\r\n")
            if not found:
                return
            count = int(size, 16)
            if count == 0:
                self.ended = True
                return
            if len(rest) < count + 2:
                return
            self.text += rest[:count]
            self.raw = rest[count + 2:]

    def block(self):
        """The next event or comment, as lines; None at the end of the stream."""
        while True:
            self.unchunk()
            if b"\n\n" in self.text:
                block, _, self.text = self.text.partition(b"\n\n")
                return block.decode().split("\n")
            if self.ended or not self.more():
                self.ended = True
                return None

    def has_block(self):
        self.unchunk()
        return b"\n\n" in self.text

    def beat(self):
        lines = self.block()
        assert lines and lines[0].startswith(":"), lines
        self.comments += 1

    def event(self, kinds=("entry",)):
        """The next event of these kinds; others are passed over, as a browser does that has no listener for them."""
        while True:
            lines = self.block()
            if lines is None:
                return None
            if lines[0].startswith(":"):
                self.comments += 1
                continue
            event = Event(lines)
            if event.kind in kinds:
                return event

    def events(self, count):
        return [self.event() for _ in range(count)]

    def rest(self):
        """All events until the stream ends."""
        found = []
        while True:
            event = self.event()
            if event is None:
                return found
            found.append(event)

    def close(self):
        self.socket.close()


def gather(streams, is_done, seconds=60):
    """Read many streams at once until is_done() of every one."""
    waiting = selectors.DefaultSelector()
    left = 0
    for stream in streams:
        if not is_done(stream):
            waiting.register(stream.socket, selectors.EVENT_READ, stream)
            left += 1
    while left:
        ready = waiting.select(seconds)
        assert ready, "%d streams wait in vain" % left
        for key, _ in ready:
            stream = key.data
            assert stream.more(), "a stream ended early"
            if is_done(stream):
                waiting.unregister(stream.socket)
                left -= 1
