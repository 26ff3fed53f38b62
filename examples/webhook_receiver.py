"""webhook_receiver.py - takes what examples/webhook.yaml sends, and nothing else.   HOOK_KEY=... webhook_receiver.py [PORT]"""
import hashlib
import hmac
import http.server
import os
import sys
import time

MAX_AGE_S = 300


def is_signed(secret: bytes, header: str, body: bytes, now: float) -> bool:
    """Is this body from a holder of the secret, and not an old request sent again?"""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    wanted = hmac.new(secret, parts.get("t", "").encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, parts.get("v1", "")):
        return False
    return abs(now - int(parts["t"])) <= MAX_AGE_S


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        good = is_signed(os.environ["HOOK_KEY"].encode(), self.headers.get("X-Pawl-Signature", ""), body, time.time())
        # The same Idempotency-Key is the same notice: keep the key where you keep what it caused.
        if good:
            print(self.headers["Idempotency-Key"], body.decode(), flush=True)
        self.send_response(204 if good else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Receiver).serve_forever()
