"""web.py - a real server in a folder of its own, and requests to it. Every answer is held against /openapi.json."""
import http.client
import json
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import described  # noqa: E402
import harness  # noqa: E402


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reason(self):
        return self.json.get("reason")

    def __repr__(self):
        return "%d %s" % (self.status, self.body[:400])


class Web:
    def __init__(self, address):
        self.host = urllib.parse.urlparse(address).netloc

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        names = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        if body is not None:
            names.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, names)
        reply = Reply(connection.getresponse())
        connection.close()
        wrong = described.answer_defects(method, path, reply.status, reply.headers.get("content-type", ""), reply.body)
        assert not wrong, "the answer is not what src/api/describe/ says: " + "; ".join(wrong)
        return reply

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body=None, headers=None):
        return self.ask("POST", path, {} if body is None else body, headers)

    def expect(self, status, method, path, body=None, headers=None):
        reply = self.ask(method, path, body, headers)
        assert reply.status == status, "expected %d from %s %s, found %r" % (status, method, path, reply)
        return reply

    def refused(self, reason, method, path, body=None, headers=None):
        reply = self.ask(method, path, body, headers)
        assert reply.headers.get("content-type") == "application/problem+json", reply.headers
        document = reply.json
        assert document["reason"] == reason, "expected %s from %s %s, found %r" % (reason, method, path, reply)
        assert document["status"] == reply.status and document["title"] and document["detail"], document
        return reply

    def create(self, **members):
        return self.expect(201, "POST", "/v1/instances", members).json["instance_id"]
