"""The other real programs (vendors.py has the first three), and how each is told of the fake model.

Owns: their throw-away settings. Knows nothing of: what is tested.
"""

import json
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realcli.fake_model_server import Server, Wire
from realcli.vendors import KEY, MODEL, Served, Vendor, serve

from uwf_git.agentkit.adapters import aider, copilot, hermes, opencode, qwen


@contextmanager
def serve_for(vendor: Vendor, *turns: dict[str, Any]) -> Iterator[Served]:
    """Serve a model to *vendor*: to aider, which offers no tools, the script all the same."""
    if vendor.name != "aider":
        with serve(*turns) as served:
            yield served
        return
    options = Namespace(
        port=0, log=None, log_bodies=True, model=MODEL, turns=list(turns), aside=None,
        aside_none=True,
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


def _furnish_opencode(_home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {}},
    }
    model = f"fake/{MODEL}"
    config = {"provider": {"fake": provider}, "model": model, "small_model": model}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "UWF_OPENCODE_MODEL": model,
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


OPENCODE = Vendor(opencode.ADAPTER, _furnish_opencode, "auto")
COPILOT = Vendor(copilot.ADAPTER, _furnish_copilot, "allow-all-tools")
QWEN = Vendor(qwen.ADAPTER, _furnish_qwen, "yolo")
HERMES = Vendor(hermes.ADAPTER, _furnish_hermes, "yolo")
AIDER = Vendor(aider.ADAPTER, _furnish_aider, "edit")

MODELS = {"opencode": f"fake/{MODEL}", "aider": f"openai/{MODEL}"}
"""How a program names the model, where that is not its name."""
