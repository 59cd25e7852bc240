"""What several adapters put on a program's command line: options, files, the schema, settings."""

import os
from collections.abc import Iterable
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.extraction.role_object import build_wanted_object

MCP_KEYS = {"mcp": "off: do not offer it the tools of `uwf mcp`"}

# Linux: 128 KiB with the zero byte at the end.
LONGEST_ARGUMENT_BYTES = 131_071


def schema_keys(way: str) -> dict[str, str]:
    """Return the setting ``schema``; *way* is how the program takes one."""
    return {"schema": f"words: ask for the fields in words, not by {way}"}


def option(name: str, value: str | None) -> tuple[str, ...]:
    """Return ``name value``; nothing without a value."""
    return (name, value) if value else ()


def setting_options(question: AdapterQuestion, keys: Iterable[str]) -> list[str]:
    """Return ``--key value`` for those of *keys* that are set."""
    return [word for key in keys for word in option(f"--{key}", question.settings.get(key))]


def find_object_schema(question: AdapterQuestion) -> dict[str, Any] | None:
    """Return the schema of the answer as one object; None to ask for the fields in words."""
    if question.schema is None or question.settings.get("schema") == "words":
        return None
    return dict(build_wanted_object(question.schema).schema)


def write_file(folder: str, name: str, text: str) -> str:
    """Write a file for the program; return its absolute path."""
    path = os.path.abspath(os.path.join(folder, name))
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path


def clean_argument(text: str) -> str:
    """Return *text* without what an argument cannot hold."""
    return text.replace("\0", "").encode(errors="replace").decode()
