"""The real programs: where they are, and how each is told of the fake model.

Owns: finding them, their throw-away settings, and serving the model.
Knows nothing of: what is tested. A program that is not there is skipped, never faked.
"""

import os
import shutil
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from realcli.fake_model_server import Server, Wire

from uwf_git.agentkit.adapters import claude, codex, gemini
from uwf_git.agentkit.command_adapter import CommandAdapter

# Where install.sh puts them. The seal removes the variable from the environment of the tests.
_INSTALLED = os.environ.get("UWF_REALCLI") or str(Path(__file__).parents[2] / "build" / "realcli")

MODEL = "fake-model"

KEY = "k-0123456789"
"""Occurs in no answer: some programs strike their key out of what they print."""


class Vendor(NamedTuple):
    """One program, and what it needs to ask the fake model."""

    adapter: CommandAdapter
    furnish: Callable[[Path, str], Mapping[str, str]]
    """Given its home and the model's URL, writes its settings and gives its environment."""

    can_do_all: str
    """The permission with which it runs commands unasked."""

    @property
    def name(self) -> str:
        """The name of its adapter."""
        return self.adapter.name

    def environ(self, home: Path, url: str) -> dict[str, str]:
        """Give the environment in which the program is found, at home in *home*, asking *url*.

        Nobody sees to it that programs tidy up: their temporary files lie in *home* as well.
        """
        temporary = home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environ = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "PATH": search_path()}
        for name in [name for name in environ if name.startswith("XDG_")]:
            del environ[name]
        return {**environ, **self.furnish(home, url)}


def search_path() -> str:
    """Give the PATH on which the programs are looked for: what install.sh made comes first."""
    places = [f"{_INSTALLED}/bin", f"{_INSTALLED}/node_modules/.bin"]
    return os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])


def require(vendor: Vendor) -> None:
    """Skip the test if the program is not there."""
    if not any(shutil.which(name, path=search_path()) for name in vendor.adapter.programs):
        pytest.skip(f"there is no {vendor.name}; tests/realcli/install.sh gets it")


class Served(NamedTuple):
    """The fake model while it is served."""

    url: str
    bodies: list[dict[str, Any]]
    """The requests, whole."""


@contextmanager
def serve(*turns: dict[str, Any]) -> Iterator[Served]:
    """Serve a model that follows a script (fake_model_server.py)."""
    options = Namespace(
        port=0, log=None, log_bodies=True, model=MODEL, turns=list(turns), aside="A title",
        aside_none=False,
    )  # fmt: skip
    server = Server(options)
    served = Served(f"http://127.0.0.1:{server.server_address[1]}", [])

    class Noting(Wire):
        def note(self, **fields: Any) -> None:
            if "body" in fields:
                served.bodies.append(fields["body"])

    server.RequestHandlerClass = Noting
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        server.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _furnish_claude(_home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # A container's only user may well be root; what runs here does no harm.
        "IS_SANDBOX": "1",
    }


def _furnish_codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        f'model = "{MODEL}"\nmodel_provider = "fake"\n'
        '[model_providers.fake]\nname = "fake"\nwire_api = "responses"\n'
        f'base_url = "{url}/v1"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        "[analytics]\nenabled = false\n"
    )
    return {}


def _furnish_gemini(home: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir(exist_ok=True)
    settings = home / ".gemini" / "settings.json"
    if not settings.exists():
        settings.write_text('{"security":{"auth":{"selectedType":"gemini-api-key"}}}')
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}


CLAUDE = Vendor(claude.ADAPTER, _furnish_claude, "bypassPermissions")
CODEX = Vendor(codex.ADAPTER, _furnish_codex, "danger-full-access")
GEMINI = Vendor(gemini.ADAPTER, _furnish_gemini, "yolo")
