"""Run the adapter that the first word names: ``python -m uwf_git.agentkit.adapters claude …``."""

import sys
from importlib import import_module

_CHAPTERS = {
    **dict.fromkeys(("aider", "cli", "hermes"), "cli"),
    **dict.fromkeys(("claude", "qwen"), "claude"),
    **dict.fromkeys(("copilot", "gemini", "opencode"), "events"),
    **dict.fromkeys(("cursor", "goose"), "untried"),
    **dict.fromkeys(("llm", "react"), "model"),
}
"""Where several adapters are, each has a ``main`` of its name; else the file has the name."""

name = sys.argv.pop(1)
main = f"{name}_main" if name in _CHAPTERS else "main"
module = import_module(f"uwf_git.agentkit.adapters.{_CHAPTERS.get(name, name)}")
sys.exit(getattr(module, main)())
