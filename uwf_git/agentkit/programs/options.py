"""What adapters give to a program: options, files, the schema, `uwf mcp`, variables.

The server `uwf mcp` gets store, thread, role and step by variables. They are part of its entry,
since many programs start MCP servers with an environment of their own.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterable
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.extraction.role_object import build_wanted_object

# Linux: 128 KiB with the zero byte at the end.
LONGEST_ARGUMENT_BYTES = 131_071


def option(name: str, value: str | None) -> tuple[str, ...]:
    return (name, value) if value else ()


def setting_options(question: AdapterQuestion, keys: Iterable[str]) -> list[str]:
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


SERVER = "uwf"

_OF_THE_TURN = ("UWF_REPO", "UWF_THREAD_ID", "UWF_ROLE", "UWF_HEAD", "UWF_STEP_DIR")
_PASSED = (*_OF_THE_TURN, "PYTHONPATH")


def find_mcp_entry(question: AdapterQuestion) -> dict[str, Any] | None:
    """Return ``command``, ``args`` and ``env`` of the turn's server; None without, or if off."""
    environ = question.environ
    is_turn = environ.get("UWF_REPO") and environ.get("UWF_THREAD_ID")
    if not is_turn or question.settings.get("mcp") == "off":
        return None
    env = {name: environ[name] for name in _PASSED if environ.get(name)}
    return {"command": sys.executable, "args": ["-P", "-m", "uwf_git", "mcp"], "env": env}


def mcp_servers_json(question: AdapterQuestion, **more: Any) -> str | None:
    """Return the JSON that claude, qwen and copilot take; *more* is added to the entry."""
    entry = find_mcp_entry(question)
    return None if entry is None else json.dumps({"mcpServers": {SERVER: {**entry, **more}}})


def mcp_toml(question: AdapterQuestion) -> str | None:
    """Return the setting that codex takes by ``-c``."""
    entry = find_mcp_entry(question)
    if entry is None:
        return None
    env = ",".join(f"{name}={_toml(value)}" for name, value in entry["env"].items())
    args = ",".join(map(_toml, entry["args"]))
    return (
        f"mcp_servers.{SERVER}={{command={_toml(entry['command'])},args=[{args}],env={{{env}}},"
        'default_tools_approval_mode="approve"}'
    )


def mcp_command_line(question: AdapterQuestion) -> str | None:
    """Return the text that goose takes by ``--with-extension``: variables, then the command.

    goose stores it with the session and starts it again in later turns, so it holds nothing that
    changes from turn to turn. The server inherits goose's own variables.
    """
    entry = find_mcp_entry(question)
    if entry is None:
        return None
    kept = [f"{name}={value}" for name, value in entry["env"].items() if name not in _OF_THE_TURN]
    return shlex.join([*kept, entry["command"], *entry["args"]])


def _toml(text: str) -> str:
    """Return *text* as a TOML string: JSON's escapes are TOML's, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


PROVIDER_VARIABLES: tuple[str, ...] = (
    "OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    "VERTEX_*", "VERTEXAI_*", "AZURE_OPENAI_*", "AZURE_API_*", "AZURE_RESOURCE_NAME",
    "AWS_PROFILE", "AWS_REGION", "AWS_REGION_NAME", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "OPENROUTER_*", "DEEPSEEK_*", "GROQ_*", "MISTRAL_*", "XAI_*", "COHERE_*", "TOGETHER_*",
    "TOGETHERAI_*", "FIREWORKS_*", "CEREBRAS_*", "MOONSHOT_*", "KIMI_*", "DASHSCOPE_*", "GLM_*",
    "ZAI_*", "ZHIPUAI_*", "MINIMAX_*", "NOUS_*", "DATABRICKS_*", "LITELLM_*", "OLLAMA_*",
    "LM_STUDIO_*", "HF_TOKEN",
)  # fmt: skip
"""The variables of model providers; a key for anything else takes the setting ``env``."""
