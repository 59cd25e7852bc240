"""Servers of git on this machine: `git daemon`, `git http-backend`, and ssh without ssh.

They listen on the loopback alone and end with the test.
"""

import base64
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from commands.sharing import Site
from programs import write_program

from uwf_git.store.git.config import set_config

_MOST_TRIES = 20


@contextmanager
def git_daemon(root: Path) -> Iterator[str]:
    """Serve every repository below *root*, for pushes as well; return the URL of *root*."""
    for _try in range(_MOST_TRIES):
        port = free_port()
        command = ["git", "daemon", "--verbose", "--export-all", "--enable=receive-pack"]
        command += ["--listen=127.0.0.1", f"--port={port}", "--reuseaddr", f"--base-path={root}"]
        daemon = subprocess.Popen(
            [*command, str(root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert daemon.stderr is not None
        drain = threading.Thread(target=daemon.stderr.read)
        try:
            # Another process may have taken the port; then it ends before it says that it is ready.
            if any(b"Ready to rumble" in line for line in daemon.stderr):
                drain.start()
                yield f"git://127.0.0.1:{port}"
                return
        finally:
            _stop(daemon)
            if drain.ident is not None:
                drain.join()
            daemon.stderr.close()
    raise AssertionError("no port is free for git daemon")


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(daemon.pid, signal.SIGTERM)
    daemon.wait()


def free_port() -> int:
    """Return a port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Backend(BaseHTTPRequestHandler):
    """Hands each request to `git http-backend`, as a web server does with CGI."""

    protocol_version = "HTTP/1.1"
    root: ClassVar[Path]
    login: ClassVar[str | None]
    asked: ClassVar[list[str | None]]
    """What each request had as its Authorization."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._read_body())

    def log_message(self, *_words: object) -> None:
        """Say nothing: a test that fails says enough."""

    def _answer(self, body: bytes) -> None:
        self.asked.append(self.headers.get("Authorization"))
        if self.login is not None and self.headers.get("Authorization") != _basic(self.login):
            self._send(401, [("WWW-Authenticate", 'Basic realm="threads"')], b"who are you?")
            return
        ran = subprocess.run(
            ["git", "http-backend"],
            env={**os.environ, **self._variables(body)},
            input=body,
            capture_output=True,
            check=True,
        )
        head, _blank, content = ran.stdout.partition(b"\r\n\r\n")
        named = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(named.pop("Status", "200").split(" ")[0])
        self._send(status, list(named.items()), content)

    def _send(self, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _variables(self, body: bytes) -> Mapping[str, str]:
        path, _mark, query = self.path.partition("?")
        return {
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": "somebody",
            "REQUEST_METHOD": self.command,
        }


def _basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


@contextmanager
def git_over_http(
    root: Path, *, login: str | None = None, asked: list[str | None] | None = None
) -> Iterator[str]:
    """Serve every repository below *root*; *login* is the `name:password` it wants to hear.

    *asked* gets the Authorization of each request.
    """
    told = {"root": root, "login": login, "asked": [] if asked is None else asked}
    with serving(type("Backend", (_Backend,), told)) as url:
        yield url


@contextmanager
def redirecting(target: str) -> Iterator[str]:
    """Redirect every request to *target*, with its path behind it; `{here}` is this server."""
    with serving(type("Elsewhere", (_Elsewhere,), {"target": target})) as url:
        yield url


class _Elsewhere(BaseHTTPRequestHandler):
    """Knows that what one looks for is elsewhere."""

    protocol_version = "HTTP/1.1"
    target: ClassVar[str]

    def do_GET(self) -> None:
        here = f"http://{self.headers['Host']}"
        self.send_response(302)
        self.send_header("Location", self.target.format(here=here) + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Let *handler* answer requests; return the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ssh_here(place: Path) -> str:
    """Write a program that takes the words of ssh, and runs the command on this machine."""
    return write_program(
        place / "ssh-here",
        f'echo "$@" >> {place}/ssh-was-asked\n'
        'for word; do command="$word"; done\n'
        'exec sh -c "$command"',
    )


def asking(site: Site, url: str) -> Site:
    """Let *site* use another URL; nobody is there to be asked for a password."""
    set_config(f"{site.path}/config", "remote.origin.url", url)
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": ""}
    site.world.caller = site.world.caller._replace(environ=environ)
    return site
