"""The real programs: where they are, and how each is pointed at the fake model.

A missing program is skipped, never faked.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from realcli.served_model import ASIDE, MODEL

from uwf_git.agentkit.adapters import claude, cli, codex, events
from uwf_git.agentkit.programs.command import CommandAdapter

# Where install.sh puts them. The seal removes the variable from the environment of the tests.
INSTALLED = os.environ.get("UWF_REALCLI") or str(Path(__file__).parents[2] / "build" / "realcli")

KEY = "k-0123456789"
"""Occurs in no answer: some programs remove their key from their output."""


class Vendor(NamedTuple):
    """One program, and its settings for the fake model."""

    adapter: CommandAdapter
    furnish: Callable[[Path, str], Mapping[str, str]]
    """Writes its settings for a home and the model's URL; returns its environment."""

    can_do_all: str
    """The permission with which it runs commands unasked."""

    model: str = MODEL
    """Its name of the model."""

    aside: str | None = ASIDE
    """The answer to it where it offers no tools (served_model.py)."""

    @property
    def name(self) -> str:
        """The name of its adapter."""
        return self.adapter.name

    def environ(self, home: Path, url: str) -> dict[str, str]:
        """Return the environment of the program, with *home* as its home and *url* as its model.

        Nobody sees to it that programs tidy up: their temporary files lie in *home* as well.
        """
        temporary = home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environ = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "PATH": search_path()}
        for name in [name for name in environ if name.startswith("XDG_")]:
            del environ[name]
        return {**environ, **self.furnish(home, url)}


def search_path() -> str:
    """Return the PATH of the programs; those of install.sh come first."""
    places = [f"{INSTALLED}/bin", f"{INSTALLED}/node_modules/.bin"]
    return os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])


def is_here(vendor: Vendor) -> bool:
    names = vendor.adapter.programs or (vendor.name,)
    return any(shutil.which(name, path=search_path()) for name in names)


def require(vendor: Vendor) -> None:
    """Skip the test if the program is not there."""
    if not is_here(vendor):
        pytest.skip(f"there is no {vendor.name}; tests/realcli/install.sh gets it")


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


_OF_OPENCODE = f"fake/{MODEL}"


def _furnish_opencode(_home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {}},
    }
    config = {"provider": {"fake": provider}, "model": _OF_OPENCODE, "small_model": _OF_OPENCODE}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _furnish_copilot(_home: Path, url: str) -> dict[str, str]:
    # It strikes its key out of all that it prints, so it gets none.
    return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{url}/v1"}


def _furnish_qwen(home: Path, url: str) -> dict[str, str]:
    folder = home / ".qwen"
    folder.mkdir(exist_ok=True)
    settings = {"security": {"auth": {"selectedType": "openai"}}}
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}


def _furnish_hermes(home: Path, url: str) -> dict[str, str]:
    folder = home / ".hermes"
    folder.mkdir(exist_ok=True)
    model = {"default": MODEL, "provider": "custom", "base_url": f"{url}/v1"}
    (folder / "config.yaml").write_text(json.dumps({"model": model}))
    return {"OPENAI_API_KEY": KEY}


def _furnish_aider(_home: Path, url: str) -> dict[str, str]:
    return {
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "AIDER_MAP_TOKENS": "0",
        "AIDER_TIMEOUT": "10",
    }


CLAUDE = Vendor(claude.CLAUDE, _furnish_claude, "bypassPermissions")
CODEX = Vendor(codex.ADAPTER, _furnish_codex, "danger-full-access")
GEMINI = Vendor(events.GEMINI, _furnish_gemini, "yolo")
OPENCODE = Vendor(events.OPENCODE, _furnish_opencode, "auto", model=_OF_OPENCODE)
COPILOT = Vendor(events.COPILOT, _furnish_copilot, "allow-all-tools")
QWEN = Vendor(claude.QWEN, _furnish_qwen, "yolo")
HERMES = Vendor(cli.HERMES, _furnish_hermes, "yolo")
# It offers no tools, so that nothing of it is an aside.
AIDER = Vendor(cli.AIDER, _furnish_aider, "edit", model=f"openai/{MODEL}", aside=None)
