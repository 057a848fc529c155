"""deploy/nginx.conf in a real nginx, between callers and two small servers that say what they were asked."""

import http.client
import re
import socket
import subprocess
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.programs import program

CONF = (Path(__file__).parents[2] / "deploy" / "nginx.conf").read_text()
AT_LAST = 20.0


class Replica(ThreadingHTTPServer):
    """Answers with the X-Forwarded-For that it got; cuts the connection while `broken`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = []
        self.broken = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.broken:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        told = ", ".join(self.headers.get_all("x-forwarded-for", [])).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, *words):
        pass


def conf_for(replicas, listen, folder):
    """The file as it is, with addresses of this machine in place of Docker's."""
    text = CONF.replace("/tmp/", f"{folder}/").replace("listen 8080", f"listen 127.0.0.1:{listen}")
    for number, replica in enumerate(replicas, 1):
        # There is no name to resolve here; nginx before 1.27.3 cannot.
        address = f"server 127.0.0.1:{replica.server_port}"
        text = re.sub(f"server replica-{number}:8000( resolve)?", address, text)
    assert "replica-" not in re.sub("#.*", "", text)
    return text


@pytest.fixture
def balanced(tmp_path):
    """The port of nginx, and the two replicas behind it."""
    nginx = program("nginx", "/usr/sbin/nginx")
    replicas = [Replica(), Replica()]
    for replica in replicas:
        threading.Thread(target=replica.serve_forever, daemon=True).start()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    path = tmp_path / "nginx.conf"
    path.write_text(conf_for(replicas, port, tmp_path))
    words = [nginx, "-e", "stderr", "-c", str(path), "-g", "daemon off; master_process off;"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + AT_LAST
        while not accepts(port):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                pytest.fail(process.communicate()[1])
            time.sleep(0.02)
        yield port, replicas
    finally:
        process.terminate()
        process.communicate(timeout=AT_LAST)
        for replica in replicas:
            replica.shutdown()
            replica.server_close()


def accepts(port):
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def ask(port, method, path, body=None, **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=AT_LAST)) as connection:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_addresses_of_visitors_are_forwarded_and_cannot_be_made_up(balanced):
    # nginx hears these from 127.0.0.1, in place of the proxy in front of it.
    port, replicas = balanced
    for sent, forwarded in (
        (None, "127.0.0.1"),
        ("203.0.113.9:4711", "203.0.113.9"),
        (
            "192.0.2.1, 203.0.113.9, 10.0.0.7",
            "203.0.113.9",
        ),  # the visitor's word, the visitor, a proxy of ours
        ("2001:db8::1", "2001:db8::1"),
    ):
        headers = {} if sent is None else {"x_forwarded_for": sent}
        assert ask(port, "POST", "/v1/models/shop/recommend", "{}", **headers) == (200, forwarded)
        assert ask(port, "GET", "/v1/models", **headers) == (200, forwarded)
    # Numbers of one replica are not those of all.
    assert ask(port, "GET", "/metrics")[0] == 404
    assert not [path for replica in replicas for path in replica.asked if "metrics" in path]


@pytest.mark.parametrize(
    ("method", "path", "again"),
    [
        ("GET", "/v1/models", True),
        ("POST", "/v1/models/shop/recommend", True),
        ("POST", "/v1/models/shop/feedback", True),
        # Counts twice if it comes twice.
        ("POST", "/v1/models/shop/warm-start", False),
    ],
)
def test_request_to_a_dying_replica_is_repeated_only_if_it_may_be(balanced, method, path, again):
    port, (first, second) = balanced
    first.broken = True
    codes = [ask(port, method, path, "{}" if method == "POST" else None)[0] for _ in range(2)]
    assert codes.count(200) == (2 if again else 1)
    assert len(first.asked) == 1
    assert len(second.asked) == codes.count(200)


def test_request_for_a_replica_that_is_gone_goes_to_the_other(balanced):
    port, (first, second) = balanced
    first.shutdown()
    first.server_close()
    codes = [ask(port, "POST", "/v1/models/shop/warm-start", "{}")[0] for _ in range(4)]
    assert (codes, len(second.asked)) == ([200] * 4, 4)
