"""Tokens and access over HTTP: every route with every scope, against a real server (RELIABILITY.md
section 4.4, F27, F28)."""
import json
import os
import pathlib
import re
import ssl
import subprocess
import urllib.request

import table
from web import Web, harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCOPES = ("read", "write", "work", "define", "test", "admin", "all")
ROWS = [(op.name, op.method, op.path, op.scope) for op in table.ALL]
ORDER = (harness.EXAMPLES / "order.yaml").read_text()


def bearer(token):
    return {"Authorization": "Bearer " + token}


def make(shell, scope, *words):
    return shell.json("token", "create", "--scope", scope, *words)


def open_server(shell, *words):
    """A server that listens on more than loopback."""
    child = shell.begin("serve", "--listen", "0.0.0.0:0", *words)
    line = child.stdout.readline().decode()
    found = re.match(r"pawl is ready on https?://0\.0\.0\.0:(\d+)", line)
    assert found, line
    return child, Web("http://127.0.0.1:" + found.group(1))


def test_a_server_on_more_than_loopback_needs_a_token_to_start_and_to_be_called(shell):
    refused = shell.pawl("serve", "--listen", "0.0.0.0:0", expect=None)
    assert refused.code != 0 and "token" in refused.err, refused
    token = make(shell, "all")["token"]
    _, web = open_server(shell)
    web.expect(200, "GET", "/healthz")
    for headers in ({}, bearer("x"), bearer(token[:-1] + ("0" if token[-1] != "0" else "1")),
                    bearer("0" * 16 + token[16:]), {"Authorization": "Basic " + token}):
        assert web.refused("unauthenticated", "GET", "/v1/instances", None, headers).status == 401
        web.refused("unauthenticated", "POST", "/v1/instances", "no JSON", headers)
    web.expect(200, "GET", "/v1/instances", None, bearer(token))


def test_every_route_is_forbidden_without_its_scope_and_allowed_with_it(shell):
    assert len(ROWS) > 20, ROWS
    tokens = {scope: make(shell, scope)["token"] for scope in SCOPES}
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, web = open_server(shell, "--test")
    cells = 0
    for name, method, path, needed in ROWS:
        if not method:
            continue
        target = re.sub(r"\{[a-z_]+\}", "x", path)
        if path.endswith("events"):  # a stream has no end
            method = "HEAD"
        assert needed == "none" or web.ask(method, target).status == 401, (name, "without a token")
        for scope, token in tokens.items():
            status = web.ask(method, target, None, bearer(token)).status
            allowed = needed in ("none", "any") or scope in (needed, "all")
            assert (status not in (401, 403)) == allowed, (name, scope, status)
            cells += 1
    assert cells > 100, cells


def test_a_scope_may_be_limited_to_a_definition(shell):
    for name in ("order", "other"):
        shell.pawl("define", shell.write(name + ".yaml", ORDER.replace("name: order", "name: " + name)))
    mine, theirs = (shell.json("start", name)["instance_id"] for name in ("order", "other"))
    token = bearer(make(shell, "read:order,write:order")["token"])
    _, web = open_server(shell)
    web.expect(200, "GET", "/v1/instances/" + mine, None, token)
    web.expect(200, "POST", "/v1/instances/%s/fire" % mine, {"action": "pay"}, token)
    web.expect(201, "POST", "/v1/instances", {"definition": "order@1"}, token)
    web.expect(200, "GET", "/v1/instances?definition=order", None, token)
    for method, path, body in (("GET", "/v1/instances/" + theirs, None), ("GET", "/v1/instances", None),
                               ("GET", "/v1/instances/" + "0" * 26, None),
                               ("GET", "/v1/instances?definition=other", None),
                               ("POST", "/v1/instances/%s/fire" % theirs, {"action": "pay"}),
                               ("POST", "/v1/instances", {"definition": "other"}),
                               ("PUT", "/v1/definitions/order", ORDER)):
        assert web.refused("forbidden", method, path, body, token).status == 403


def test_a_scope_of_something_that_is_no_definition_is_refused(shell):
    shell.pawl("init")
    for scope in ("read:", "write:order@2", "read,work:a b", "reed", "read,,write"):
        found = shell.pawl("token", "create", "--scope", scope, expect=1)
        assert "expected a list like read,write:order of read, write, work," in found.err, (scope, found)


def test_a_token_ends_at_once_when_it_is_revoked_and_in_time_when_it_expires(shell):
    admin, brief = make(shell, "admin"), make(shell, "read", "--expires", "1h", "--name", "ci")
    assert {t["token_id"] for t in shell.json("token", "list")["tokens"]} == {
        admin["token_id"], brief["token_id"]}
    listed = shell.pawl("token", "list").out + shell.pawl("sql", "select body from pawl_log").out
    for one in (admin, brief):
        assert one["token"].split(".")[1] not in listed, "a secret is shown again"
    _, web = open_server(shell, "--test")
    test = make_through(web, admin, "test")
    web.expect(200, "GET", "/v1/instances", None, bearer(brief["token"]))
    web.expect(200, "POST", "/v1/test/advance", {"by": "3599s"}, bearer(test["token"]))
    web.expect(200, "POST", "/v1/test/advance", {"by": "2s"}, bearer(test["token"]))
    web.refused("unauthenticated", "GET", "/v1/instances", None, bearer(brief["token"]))
    web.expect(200, "DELETE", "/v1/tokens/" + test["token_id"], None, bearer(admin["token"]))
    web.refused("unauthenticated", "POST", "/v1/test/advance", {"by": "1s"}, bearer(test["token"]))
    web.refused("not-known", "DELETE", "/v1/tokens/" + test["token_id"], None, bearer(admin["token"]))
    web.refused("invalid-request", "POST", "/v1/tokens", {"scopes": "everything"}, bearer(admin["token"]))
    web.refused("invalid-request", "POST", "/v1/tokens", {"scopes": "read"},
                {**bearer(admin["token"]), "Idempotency-Key": "k"})


def make_through(web, admin, scopes):
    return web.expect(201, "POST", "/v1/tokens", {"scopes": scopes}, bearer(admin["token"])).json


def test_loopback_needs_no_token_but_one_that_is_shown_counts(shell):
    _, address = shell.serve()
    web = Web(address)
    token = web.expect(201, "POST", "/v1/tokens", {"scopes": "read"}).json["token"]
    web.expect(200, "GET", "/v1/instances", None, bearer(token))
    web.refused("forbidden", "POST", "/v1/instances", {"definition": "x"}, bearer(token))
    web.refused("unauthenticated", "GET", "/v1/instances", None, bearer("nobody"))


def test_keys_of_two_tokens_do_not_meet(shell):
    tokens = [bearer(make(shell, "write")["token"]) for _ in range(2)]
    shell.pawl("define", str(harness.EXAMPLES / "order.yaml"))
    _, web = open_server(shell)
    made = [web.expect(201, "POST", "/v1/instances", {"definition": "order"},
                       {**token, "Idempotency-Key": "k"}).json["instance_id"] for token in tokens * 2]
    assert made[0] == made[2] and made[1] == made[3] and made[0] != made[1], made


def test_a_foreign_host_or_origin_is_forbidden_whatever_the_token(shell):
    token = bearer(make(shell, "all")["token"])
    _, web = open_server(shell, "--host", "pawl.example")
    port = web.host.split(":")[1]
    for host, origin, status in (("pawl.example", None, 200), ("pawl.example:" + port, None, 200),
                                 ("evil.example", None, 403), ("pawl.example.evil", None, 403),
                                 ("pawl.example", "https://pawl.example", 200),
                                 ("pawl.example", "https://evil.example", 403),
                                 ("127.0.0.1:" + port, "http://evil.example", 403)):
        headers = {**token, "Host": host, **({"Origin": origin} if origin else {})}
        assert web.ask("GET", "/v1/instances", None, headers).status == status, (host, origin)


def test_the_command_line_goes_through_an_owner_that_listens_everywhere(shell):
    token = make(shell, "read")["token"]
    open_server(shell)
    assert shell.pawl("list", env={"PAWL_TOKEN": token}).out == "no instances\n"
    assert "unauthenticated" in shell.pawl("list", expect=1).err


def test_a_page_of_another_site_is_forbidden_and_no_answer_is_guessed_at(shell):
    """RELIABILITY.md F28 and section 4.4: a browser says where a request comes from, where it sends no Origin."""
    web = Web(shell.serve()[1])
    body = {"definition": "nobody"}
    for site, status in (("cross-site", 403), ("same-origin", 404), ("same-site", 404), ("none", 404)):
        assert web.ask("POST", "/v1/instances", body, {"Sec-Fetch-Site": site}).status == status, site
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert web.ask("GET", "/healthz", None, followed).status == 200, "somebody who follows a link"
    assert web.ask("GET", "/healthz", None, {**followed, "Sec-Fetch-Mode": "no-cors"}).status == 403
    refused = web.ask("POST", "/v1/instances", body, followed)
    assert (refused.status, refused.json["detail"]) == (403, "pages of other sites may not call this server")
    for method, path in (("GET", "/healthz"), ("GET", "/no"), ("POST", "/v1/instances"), ("GET", "/openapi.json")):
        assert web.ask(method, path, None).headers["x-content-type-options"] == "nosniff", path


def test_a_server_with_a_certificate_speaks_tls_and_nothing_else(shell):
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
                           "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                          cwd=shell.folder, capture_output=True)
    if made.returncode != 0:
        raise harness.Skip("there is no openssl to make a certificate")
    assert shell.pawl("serve", "--tls-cert", "cert.pem", expect=2)
    child = shell.begin("serve", "--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    line = child.stdout.readline().decode()
    port = re.match(r"pawl is ready on https://127\.0\.0\.1:(\d+)", line).group(1)
    trust = ssl.create_default_context(cafile=os.path.join(shell.folder, "cert.pem"))
    with urllib.request.urlopen("https://127.0.0.1:%s/healthz" % port, context=trust) as answer:
        assert answer.status == 200
    try:
        Web("http://127.0.0.1:" + port).get("/healthz")
    except OSError:
        pass
    except Exception as error:
        assert "BadStatusLine" in repr(error) or "RemoteDisconnected" in repr(error), repr(error)
    else:
        raise AssertionError("it answered without TLS")


def test_each_line_of_a_batch_is_authorised_on_its_own(shell):
    for name in ("order", "other"):
        shell.pawl("define", shell.write(name + ".yaml", ORDER.replace("name: order", "name: " + name)))
    mine, theirs = (shell.json("start", name)["instance_id"] for name in ("order", "other"))
    token = bearer(make(shell, "write:order")["token"])
    _, web = open_server(shell)
    lines = [("instance.fire", {"instance_id": mine, "action": "pay"}), ("instance.fire", {"instance_id": theirs, "action": "pay"}),
             ("instance.get", {"instance_id": mine}), ("token.create", {"scopes": "all"}), ("store.verify", {}),
             ("instance.create", {"definition": "order"}), ("instance.create", {"definition": "other"}), ("health.get", {}),
             ("alarm.set", {"after": "1h", "operation": "instance.fire", "input": {"instance_id": theirs, "action": "pay"}})]
    text = "\n".join(json.dumps({"operation": name, "input": members}) for name, members in lines)
    web.refused("unauthenticated", "POST", "/v1/batch", text)
    reply = web.expect(200, "POST", "/v1/batch", text, token)
    found = [json.loads(line)["status"] for line in reply.body.splitlines()]
    assert found == [200, 403, 403, 403, 403, 201, 403, 200, 403], found
    assert web.ask("GET", "/metrics", None, token).status == 403
    assert web.ask("HEAD", "/v1/events", None, token).status == 403


def test_an_alarm_in_an_alarm_may_do_no_more_than_its_token(shell):
    admin = make(shell, "admin")
    token = bearer(make(shell, "write")["token"])
    _, web = open_server(shell)
    inner = {"operation": "token.revoke", "after": "1s", "input": {"token_id": admin["token_id"]}}
    for _ in range(3):
        web.refused("forbidden", "POST", "/v1/alarms", inner, token)
        inner = {"operation": "alarm.set", "after": "1s", "input": inner}


if __name__ == "__main__":
    harness.main(globals())
