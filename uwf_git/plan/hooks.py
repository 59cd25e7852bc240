"""The stop hook of AI tools: its plugin folder, its form for a tool, a project's own settings.

A hook that prints nothing and ends with 0 lets every tool go on. Timeouts are in seconds. Codex
asks a person to review a project's hooks, and skips them silently until then. Any other tool that
can run a command when it has stopped takes the hook's command as it is.
"""

import ipaddress
import json
import os
import re
import shlex
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import BadJson, parse_strict_json
from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.plan import project_files

HOOK_VARIABLE = "UWF_STOP_HOOK"
"""What the agents of a run are given: its thread, a colon, and the path of the hook's script."""

TOOLS = ("claude", "copilot", "codex", "other")

INSTALLED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    ".claude/settings.local.json": {},
    ".codex/hooks.json": {},
    ".gemini/settings.json": {},
    ".qwen/settings.json": {},
    ".cursor/hooks.json": {"version": 1},
}
"""The settings into which a version of uwf has merged its hook, and what else it put there."""

INSTALLED_FILES = (
    ".github/hooks/uwf-stop.json",
    ".opencode/plugins/uwf-stop.js",
    ".agents/plugins/uwf-stop/plugin.json",
    ".agents/plugins/uwf-stop/hooks/hooks.json",
)
"""The files of a project that a version of uwf has written, and nobody else."""

_SCRIPT = ("workflow", "hooks", "stop_hook")
"""The last parts of the path of our script; by them a hook is known as ours."""

_OURS = r"[\\/]+".join(_SCRIPT) + r"\b"
_MARK = "\ufeff"
_INDENT = r"^[{\[]\r?\n([ \t]+)"
_EXECUTABLE = 0o755


class StopHook(NamedTuple):
    """The program that tells of a stop; both paths are absolute."""

    script: str
    python: str = sys.executable

    @property
    def argv(self) -> list[str]:
        """The command; isolated, so that no variable of the user's makes it print."""
        return [self.python, "-I", self.script]

    @property
    def command(self) -> str:
        if os.name == "nt":
            return " ".join(f'"{word}"' for word in self.argv)
        return shlex.join(self.argv)

    @property
    def plugin(self) -> str:
        return os.path.dirname(os.path.dirname(self.script))


# The plugin folder.


def find_hook(workdir: str, plugin_dir: str) -> StopHook:
    hook = StopHook(os.path.join(os.path.abspath(workdir), plugin_dir, *_SCRIPT))
    for name in build_plugin(hook, ""):
        if project_files.resolve_inside(workdir, os.path.join(hook.plugin, name)) is None:
            raise _settings_refused(hook.plugin, "leads out of the work directory")
    return hook


def write_plugin(hook: StopHook, version: str, *, state_file: str) -> list[str]:
    """Write the files of the plugin that are missing or differ; *state_file* is absolute."""
    contents = build_plugin(hook, version)
    place = os.path.relpath(state_file, os.path.dirname(hook.script)).replace(os.sep, "/")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_hook.py")
    with open(source, encoding="utf-8") as file:
        text = re.sub("(?m)^STATE_FILE = .*", lambda _: f"STATE_FILE = {place!r}", file.read())
    contents["/".join(_SCRIPT[1:])] = f"#!/usr/bin/env python3\n{text}"
    project_files.keep_out_of_git(os.path.dirname(hook.plugin))
    written = []
    for name, text in contents.items():
        path = os.path.join(hook.plugin, *name.split("/"))
        if project_files.replace_if_changed(path, text.encode()):
            written.append(path)
    os.chmod(hook.script, _EXECUTABLE)
    return written


def build_plugin(hook: StopHook, version: str) -> dict[str, str]:
    """Return the files of a plugin of claude and copilot, by path from its folder.

    ``manifest.json`` is the seed's; ``.claude-plugin/plugin.json`` is what the tools read.
    """
    about = {
        "name": "uwf-stop",
        "version": version,
        "description": "Tells uwf when this tool stops",
    }
    return {
        "manifest.json": _json({**about, "hooks": "hooks/config.json"}),
        ".claude-plugin/plugin.json": _json({**about, "hooks": "./hooks/config.json"}),
        "hooks/config.json": _json(_nested(hook, "Stop", "SessionEnd")),
    }


# What a tool takes.


def list_run_words(tool: str, hook: StopHook) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, without settings or trust, or []."""
    if tool in {"claude", "copilot"}:
        return ["--plugin-dir", hook.plugin]
    if tool == "codex":
        # An array of texts is the same in TOML as in JSON.
        return ["-c", f"notify={json.dumps(hook.argv, ensure_ascii=False)}"]
    return []


def list_words_of_turn(tool: str, environ: Mapping[str, str]) -> list[str]:
    """Return the words by which a run of *tool* gets the hook, if the turn in *environ* has a hook.

    An agent of another thread, which an agent of this thread has started, gets no hook.
    """
    thread, _, script = environ.get(HOOK_VARIABLE, "").partition(":")
    if not script or thread != environ.get("UWF_THREAD_ID"):
        return []
    return list_run_words(tool, StopHook(script))


def build_settings(tool: str, hook: StopHook) -> dict[str, dict[str, Any]]:
    """Return what a project may hold for *tool*, one of ``TOOLS``: the JSON by its file."""
    settings = {
        "claude": {".claude/settings.local.json": _nested(hook, "Stop", "SessionEnd")},
        "codex": {".codex/hooks.json": _nested(hook, "Stop")},
    }
    return settings.get(tool, {})


def advise(tool: str, hook: StopHook) -> str | None:
    advice = {
        "claude": None,
        "codex": "open codex in this project and review its hooks: until then it skips them",
        "copilot": "copilot reads the plugin: give it the words of `run`",
    }
    return advice.get(tool, f"have the tool run this when it has stopped: {hook.command}")


def _nested(hook: StopHook, *events: str) -> dict[str, Any]:
    """Return the settings of claude and those that took its form."""
    entry = {"type": "command", "command": hook.command, "timeout": 10}
    return {"hooks": {event: [{"hooks": [dict(entry)]}] for event in events}}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# The settings of a project.


def install_hook(workdir: str, tool: str, hook: StopHook) -> list[str]:
    """Put the hook of *tool* into the project's settings; return the paths that changed."""
    contents = {
        path: add_hooks(_read_settings(workdir, path), settings)
        for path, settings in build_settings(tool, hook).items()
    }
    return [
        path
        for path, text in contents.items()
        if project_files.replace_if_changed(os.path.join(workdir, path), text.encode())
    ]


def uninstall_hooks(workdir: str) -> list[str]:
    """Take out the hooks that any version of uwf has installed; return the paths that changed.

    An empty file that is left over is removed, and so is its empty folder.
    """
    after = {path: "" for path in INSTALLED_FILES if _is_our_file(workdir, path)}
    for path, others in INSTALLED_SETTINGS.items():
        # What is behind a link, or has no hook of ours, was never ours.
        if not _is_our_file(workdir, path):
            continue
        before = _read_settings(workdir, path)
        text = remove_hooks(before, others)
        if text != before:
            after[path] = text
    for path, text in after.items():
        whole = os.path.join(workdir, path)
        if text:
            project_files.replace_if_changed(whole, text.encode())
        else:
            os.unlink(whole)
            # Up to the first folder that is not empty.
            folder = path
            with suppress(OSError):
                while folder := os.path.dirname(folder):
                    os.rmdir(os.path.join(workdir, folder))
    return list(after)


def _settings_refused(path: str, problem: str) -> Refused:
    return Refused(
        f"{path} {problem}; nothing was changed",
        code="settings-refused",
        hint="mend the file, or edit it by hand: `uwf plan plugin --for TOOL` prints the hook",
        path=path,
    )


def _read_settings(workdir: str, path: str) -> str:
    if _is_linked(workdir, path):
        # It may be the file of all projects, and a replaced link is lost.
        raise _settings_refused(path, "is a link, or lies behind one")
    try:
        text = (project_files.read_whole(os.path.join(workdir, path)) or b"").decode()
        _parse(text)
    except UnicodeDecodeError as error:
        raise _settings_refused(path, f"is not UTF-8 (byte {error.start:,})") from error
    except NotMergeable as error:
        raise _settings_refused(path, str(error)) from error
    return text


def _is_our_file(workdir: str, path: str) -> bool:
    """Check whether a file of the project, no link, runs our script or belongs to what does."""
    if _is_linked(workdir, path):
        return False
    content = project_files.read_whole(os.path.join(workdir, path)) or b""
    return b"stop_hook" in content or (bool(content) and path.endswith("/plugin.json"))


def _is_linked(workdir: str, path: str) -> bool:
    is_link = os.path.islink(os.path.join(workdir, path))
    return is_link or project_files.resolve_inside(workdir, path) is None


# The text of a settings file: our hooks are put in and taken out, all else stays.


class NotMergeable(ValueError):
    """The file holds something else than settings; the message says what."""


def add_hooks(text: str, settings: Mapping[str, Any]) -> str:
    """Return *text* ("" for no file) with the hooks of *settings* in place of older ones."""
    before = _parse(text)
    document = _without_ours(before)
    hooks = document["hooks"] = dict(document.get("hooks", {}))
    for event, entries in settings["hooks"].items():
        hooks[event] = [*hooks.get(event, []), *entries]
    return text if document == before else _render(document, text)


def remove_hooks(text: str, others: Mapping[str, Any]) -> str:
    """Return *text* without our hooks; an empty text if nothing but *others* is left."""
    before = _parse(text)
    after = _without_ours(before)
    if after == before:
        return text
    return "" if after in ({}, others) else _render(after, text)


def _parse(text: str) -> dict[str, Any]:
    plain = text.removeprefix(_MARK)
    if not plain.strip():
        return {}
    try:
        # Strict, since a key that is there twice would be lost.
        parse_strict_json(plain)
        document = json.loads(plain)
    except BadJson as error:
        raise NotMergeable(f"is {error.message}") from error
    if not isinstance(document, dict):
        raise NotMergeable("is no JSON object")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise NotMergeable("has hooks of another form")
    return document


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    kept = {event: [*_foreign(entries)] for event, entries in hooks.items()}
    kept = {event: entries for event, entries in kept.items() if entries or not hooks[event]}
    # Empty hooks stay if they were empty before.
    if kept or not hooks:
        return {**document, "hooks": kept} if "hooks" in document else dict(document)
    return {key: value for key, value in document.items() if key != "hooks"}


def _foreign(entries: list[Any]) -> Iterator[Any]:
    for entry in (each for each in entries if not _is_ours(each)):
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        if not (inner and isinstance(inner, list)):
            yield entry
        elif left := [each for each in inner if not _is_ours(each)]:
            yield {**entry, "hooks": left}


def _is_ours(entry: Any) -> bool:
    return isinstance(entry, dict) and any(
        isinstance(value, str) and re.search(_OURS, value) for value in entry.values()
    )


def _render(document: Mapping[str, Any], like: str) -> str:
    plain = like.removeprefix(_MARK)
    indent = re.match(_INDENT, plain)
    text = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    if plain.endswith("\n") or not plain:
        text += "\n"
    if "\r\n" in plain:
        text = text.replace("\n", "\r\n")
    return (_MARK if like.startswith(_MARK) else "") + text


# Stop notices: a hook sends one over TCP when an AI tool stops, and whoever drives receives it.
#
# One JSON object a connection, one line as the answer: ``{"status": "ok"}``, or ``{"status":
# "error", "message": …}``. Source: seed 002.
#
# A notice alone ends nothing: the driver ends the program only if its report is there and fits.

PHASES = ("planning", "executing")
"""The phases in which an agent is at work, and so can stop."""

MOST_BYTES = 64 * 1024
MOST_DEPTH = 20

_NOTICE = b"\xef\xbb\xbf"
_TOKEN = rb'(?s)"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[][{}]'
_SHOWN = 40


class Notice(NamedTuple):
    """A tool has stopped; it decides nothing by itself."""

    phase: str
    thread: str | None
    head: str | None
    """The node after which the tool's turn began, and its thread; None: the sender did not say."""

    document: Mapping[str, Any]
    """All that was sent: its ``timestamp`` is recorded and never trusted."""


def find_object(received: bytes) -> bytes | None:
    """Return the JSON object that was *received*, None before it is whole; the rest is ignored."""
    if _NOTICE.startswith(received):
        return None
    content = received.removeprefix(_NOTICE)
    if not content.startswith(b"{"):
        raise ValueError("it does not begin with {")
    depth = 0
    for token in re.finditer(_TOKEN, content[:MOST_BYTES]):
        if token[0] in {b"{", b"["}:
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError(f"it has more than {MOST_DEPTH} levels")
        elif token[0] in {b"}", b"]"}:
            depth -= 1
            if depth == 0:
                return content[: token.end()]
    if len(content) >= MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return None


def parse_notice(content: bytes) -> Notice:
    """Parse the object that ``find_object`` found."""
    try:
        document = parse_strict_json(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start:,})") from error
    except BadJson as error:
        raise ValueError(f"it is {error.message}") from error
    if not isinstance(document, dict) or document.get("type") != "stop":
        raise ValueError('its type is not "stop"')
    if document.get("phase") not in PHASES:
        raise ValueError(f"its phase is not {' or '.join(PHASES)}")
    return Notice(document["phase"], _name(document, "thread"), _name(document, "head"), document)


def _name(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its {key} is not a text: {value!r:.{_SHOWN}}")
    return value or None


# The grace of a program that has told of its stop.


class TurnAtWork(NamedTuple):
    thread: str
    head: str
    phase: str


class StopGrace:
    """The grace of the turn at work. The stop server's threads may call ``take``.

    A tool stops at every turn of a conversation, and tells it twice: each notice begins the grace
    anew, and its end is told once, so that a program which goes on is left alone.
    """

    def __init__(self, grace_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Count *grace_s* seconds of *clock*; 0: a program is never ended."""
        self._grace_s, self._clock = grace_s, clock
        self._lock = threading.Lock()
        self._turn: TurnAtWork | None = None
        self._ends: float | None = None

    def begin(self, turn: TurnAtWork | None, *, has_stopped: bool = False) -> None:
        """Begin *turn*, or end the turn at work; earlier notices are forgotten.

        For a turn that is taken up again, *has_stopped* says that a notice has come before.
        """
        with self._lock:
            self._turn, self._ends = turn, None
            if has_stopped:
                self._renew()

    def take(self, notice: Notice) -> bool:
        """Take a notice; return whether it is about the turn at work. Other notices change nothing.

        Without thread and head a notice is about any turn of its phase.
        """
        with self._lock:
            turn = self._turn
            is_taken = (
                turn is not None
                and notice.phase == turn.phase
                and notice.thread in {None, turn.thread}
                and notice.head in {None, turn.head}
            )
            if is_taken:
                self._renew()
            return is_taken

    def is_over(self) -> bool:
        """Return whether the grace of the newest notice has run out; True once for each."""
        with self._lock:
            if self._ends is None or self._clock() < self._ends:
                return False
            self._ends = None
            return True

    def _renew(self) -> None:
        if self._grace_s > 0:
            self._ends = self._clock() + self._grace_s


# The server, in threads of whoever drives.


class CannotListen(Refused):
    """The address, or the port that was asked for, is not to be had."""

    code = "cannot-listen"

    def __init__(self, address: str, port: int, problem: str) -> None:
        super().__init__(
            f"no stop notices can be received at {address} port {port}: {problem}",
            hint="name another by --port, or none: then a free one is taken",
            address=address,
            port=port,
        )


class StopServer(socketserver.ThreadingTCPServer):
    """A server that listens until it is closed; use it in a ``with``.

    *on_notice* is called for a single notice at a time, in a thread of the server; the sender gets
    its answer afterwards.
    """

    read_s = 5.0
    """How long a notice may take from the connection on."""

    drain_s = 1.0
    """How long the sender may take to hang up after the answer."""

    most_connections = 100
    """How many are served at once; one more, and the oldest is hung up on."""

    # What socketserver asks for. On Windows the first would let two servers have one port.
    allow_reuse_address = os.name == "posix"
    daemon_threads = True
    # Where it overflows the system lets a sender wait for a second, which is all that a hook has.
    request_queue_size = 128

    def __init__(
        self, on_notice: Callable[[Notice], None], *ports: int, address: str = "127.0.0.1"
    ) -> None:
        """Listen at the first of *ports* that is free; 0 is any free one."""
        self._on_notice = on_notice
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self._connections: dict[socket.socket, None] = {}
        self._listen(address, ports)
        self.address, self.port = str(self.server_address[0]), int(self.server_address[1])
        self.is_local = is_loopback(self.address)
        """Whether only this machine can connect."""

        threading.Thread(
            target=self.serve_forever, args=(0.05,), name="uwf-stop-server", daemon=True
        ).start()

    def _listen(self, address: str, ports: tuple[int, ...]) -> None:
        for port in ports:
            try:
                found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
                self.address_family, *_, place = found[0]
                super().__init__((str(place[0]), port), _Conversation)
            except (OSError, ValueError, OverflowError) as error:
                if port == ports[-1]:
                    problem = error.strerror if isinstance(error, OSError) else None
                    raise CannotListen(address, port, problem or str(error)) from error
            else:
                return

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and hang up on who is connected. The second time does nothing."""
        self.shutdown()
        self.server_close()
        for each in list(self._connections):
            self._hang_up(each, socket.SHUT_RDWR)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            # The sender is gone, or this process has no descriptor left: trying again at once
            # would keep a processor busy.
            debug("9TQ4M2XK", "a connection was not accepted", problem=str(error))
            time.sleep(self.drain_s)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._connections) >= self.most_connections:
                # Whoever has a notice sends it at once, so the oldest has had the most time.
                self._hang_up(next(iter(self._connections)), socket.SHUT_RD)
            self._connections[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def _hang_up(self, connection: socket.socket, how: int) -> None:
        """Let the thread of *connection* come to the end of what is sent there."""
        self._connections.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(how)

    def is_connected(self, connection: socket.socket) -> bool:
        return connection in self._connections

    def take(self, notice: Notice) -> str | None:
        """Hand *notice* on; return why that was not possible."""
        try:
            with self._taking:
                self._on_notice(notice)
        except Exception as error:  # noqa: BLE001 (one notice may not end the server)
            debug("2HV7C5RD", "a stop notice was not taken", problem=repr(error))
            return "it was not taken"
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 (as it is called)
        """Tell of a connection that could not be served."""
        debug("5YV0D8WN", "a connection was not served", sender=repr(client_address))


class _Conversation(socketserver.BaseRequestHandler):
    """A connection: one notice, one answer."""

    server: StopServer
    request: socket.socket

    def handle(self) -> None:
        # The sender may be gone.
        with suppress(OSError):
            problem = self._find_problem()
            answer = {"status": "error", "message": problem} if problem else {"status": "ok"}
            self.request.settimeout(self.server.drain_s)
            self.request.sendall(json.dumps(answer).encode() + b"\n")
            self.request.shutdown(socket.SHUT_WR)
            # Bytes that nobody has read would make the system send a reset in place of the answer.
            for _ in self._receive(self.server.drain_s):
                pass

    def _find_problem(self) -> str | None:
        received = b""
        try:
            for piece in self._receive(self.server.read_s):
                received += piece
                whole = find_object(received)
                if whole is not None:
                    return self.server.take(parse_notice(whole))
        except ValueError as error:
            return f"not a stop notice: {error}"
        except TimeoutError:
            return f"not whole after {self.server.read_s:g} s"
        if not self.server.is_connected(self.request):
            return "not whole before too many others came"
        return "not a stop notice: it ends before its object is whole"

    def _receive(self, seconds: float) -> Iterator[bytes]:
        """Yield what is sent, piece by piece, to its end."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self.request.settimeout(left)
            piece = self.request.recv(16 * 1024)
            if not piece:
                return
            yield piece
        raise TimeoutError


def is_loopback(address: str) -> bool:
    """Check whether *address*, in digits, can only be reached from this machine."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
