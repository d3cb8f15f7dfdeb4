from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tidegate.cli.network.admin_client import AdminClient, printable
from tidegate.errors import AccessError, ConnectionLostError, NetworkError


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """A server that answers everything the same; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def client(url: str) -> AdminClient:
    return AdminClient(url, "a token", None, 10.0)


def test_answers_and_errors() -> None:
    with answering(200, '{"x": 1}') as url:
        assert client(url).get("/state") == {"x": 1}
    with answering(401, "{}") as url, pytest.raises(AccessError, match="the admin token is wrong"):
        client(url).get("/state")
    problem = json.dumps({"detail": "it is full"})
    with answering(503, problem) as url, pytest.raises(NetworkError, match="it is full"):
        client(url).get("/state")
    with answering(200, "<html>") as url, pytest.raises(NetworkError, match="not the admin port"):
        client(url).get("/state")
    with pytest.raises(ConnectionLostError, match="cannot be reached"):
        client(url).get("/state")


@pytest.mark.parametrize(
    "url", ["tidegate://127.0.0.1:7070", "http://127.0.0.1", "http://x:port", "https://x:1", "x:1"]
)
def test_urls_that_are_none_of_an_admin_port(url: str) -> None:
    with pytest.raises(NetworkError, match="is not the URL of an admin port"):
        client(url)


def test_token_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a token\n")
    AdminClient("http://127.0.0.1:1", None, file, 1.0)
    with pytest.raises(AccessError, match="TIDEGATE_ADMIN_TOKEN"):
        AdminClient("http://127.0.0.1:1", None, None, 1.0)


def test_texts_of_strangers() -> None:
    assert printable("desk-7") == "desk-7"
    assert "\x1b" not in printable("\x1b[31mred\n")
    assert len(printable("x" * 50, 10)) == 10
