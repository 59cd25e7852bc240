"""`uwf ui` as a process, and a client that says exactly what a test wants."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the error."""
        return str(self.json["error"]["code"])


@dataclass(slots=True)
class PageServer:
    """A server that runs, and how it is asked."""

    process: subprocess.Popen[bytes]
    address: str
    store: str

    @property
    def port(self) -> int:
        return int(self.address.partition("#")[0].strip("/").rpartition(":")[2])

    @property
    def token(self) -> str:
        return self.address.partition("#")[2]

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Ask with the token; *headers* are added, or replace one; an empty one is left out."""
        given = {"Authorization": f"Bearer {self.token}", "Host": f"127.0.0.1:{self.port}"}
        content = None
        if method == "POST":
            given["Content-Type"] = "application/json"
            content = json.dumps({} if body is None else body).encode()
            given["Content-Length"] = str(len(content))
        given |= headers or {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items() if v)]
        return self.send("\r\n".join([*lines, "", ""]).encode() + (content or b""))

    def send(self, request: bytes) -> Reply:
        """Send bytes on a connection of their own, and read the answer."""
        with self.connect() as connection:
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return Reply(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE_S)

    @contextmanager
    def stream(self, query: str = "") -> Iterator[Iterator[Any]]:
        """Open a stream, and give its lines."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        connection.request(
            "GET", f"/api/stream{query}", headers={"Authorization": f"Bearer {self.token}"}
        )
        response = connection.getresponse()
        assert response.status == 200
        try:
            yield (json.loads(line) for line in iter(response.readline, b""))
        finally:
            response.close()
            connection.close()


@contextmanager
def run_page(
    store: str, directory: Path, *words: str, env: Mapping[str, str] | None = None
) -> Iterator[PageServer]:
    """Run `uwf ui` on *store* until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "ui", "--no-open", *words],
        env={**os.environ, "UWF_REPO": store, **(env or {})},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        told = process.stdout.readline()
        assert told, process.communicate()[1].decode()
        yield PageServer(process, json.loads(told)["address"], store)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_PATIENCE_S)
