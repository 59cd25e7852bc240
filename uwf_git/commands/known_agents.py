"""Known agents: the programs that come with an adapter, and which of them are on this machine.

Owns: the table from an adapter to the programs that it drives, and how to get these.
Knows nothing of: how any adapter works. A test holds the table against the adapters themselves.
Always true: looking changes nothing; a program is asked for nothing but its version.
"""

import os
import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.agents.command_line import (
    ProgramMissing,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.agents.tool import ToolRequest, run_tool
from uwf_git.commands.choose_agent import PERSON

_VERSION = re.compile(rb"\d+(?:\.\d+)+[\w.+-]*")
_VERSION_TIMEOUT_S = 10.0
_VERSION_BYTES = 8192


class KnownAgent(NamedTuple):
    """An agent that uwf has an adapter for."""

    command: str
    """The adapter's own command, as it is bound to a role; a person needs no adapter."""

    about: str
    programs: tuple[str, ...] = ()
    """The program's names, the likeliest first; none: the adapter needs no other program."""

    install: str = ""
    """How to get the program."""

    example: str | None = None
    """How it is called, where it needs words of its own."""


KNOWN: tuple[KnownAgent, ...] = (
    KnownAgent(
        "uwf-claude", "Claude Code", ("claude",), "npm install -g @anthropic-ai/claude-code"
    ),
    KnownAgent("uwf-codex", "OpenAI Codex", ("codex",), "npm install -g @openai/codex"),
    KnownAgent("uwf-gemini", "Gemini CLI", ("gemini",), "npm install -g @google/gemini-cli"),
    KnownAgent("uwf-opencode", "opencode", ("opencode",), "npm install -g opencode-ai"),
    KnownAgent(
        "uwf-copilot",
        "GitHub Copilot CLI",
        ("copilot", "copilot-linux-x64"),
        "npm install -g @github/copilot",
    ),
    KnownAgent("uwf-qwen", "Qwen Code", ("qwen",), "npm install -g @qwen-code/qwen-code"),
    KnownAgent(
        "uwf-cursor",
        "Cursor CLI",
        ("cursor-agent", "agent"),
        "curl https://cursor.com/install -fsS | bash",
    ),
    KnownAgent("uwf-goose", "goose", ("goose",), "see https://goose-docs.ai"),
    KnownAgent("uwf-hermes", "Hermes Agent", ("hermes",), "pipx install hermes-agent"),
    KnownAgent("uwf-aider", "aider", ("aider",), "pipx install aider-chat"),
    KnownAgent("uwf-llm", "one call of a model, by its endpoint"),
    KnownAgent("uwf-react", "a model with tools, by its endpoint"),
    KnownAgent(
        "uwf-acp", "any agent of the Agent Client Protocol", example="uwf-acp 'gemini --acp'"
    ),
    KnownAgent("uwf-cli", "any command: prompt in, text out", example="uwf-cli 'my-tool --ask'"),
    KnownAgent(PERSON, "a person, for whose `uwf thread answer` the thread waits"),
    KnownAgent("uwf-human", "a person at the terminal"),
    KnownAgent("uwf-shell", "a shell command", example="uwf-shell 'make test'"),
    KnownAgent("uwf-mock", "a script, for trying workflows out", example="uwf-mock script.yaml"),
)


class FoundAgent(NamedTuple):
    """A known agent as it is on this machine."""

    agent: KnownAgent
    path: str | None
    """Where its program is; None if it is not here, or needs none."""

    version: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether it could play a role."""
        return self.path is not None or not self.agent.programs


def find_agents(environ: Mapping[str, str], *, with_versions: bool) -> list[FoundAgent]:
    """Look for the program of every known agent, in the table's order."""
    found = [FoundAgent(agent, _find_program(agent, environ)) for agent in KNOWN]
    if not with_versions:
        return found
    # Node takes a while to start, and there may be many. Only who asks for versions pays for it.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (see above)

    with ThreadPoolExecutor(max_workers=4) as pool:
        versions = pool.map(lambda each: _read_version(each.path, environ), found)
        return [
            each._replace(version=version) for each, version in zip(found, versions, strict=True)
        ]


def name_agent(text: str) -> str:
    """Give the command that *text* means: ``claude`` is ``uwf-claude``; a command is itself.

    ``human`` is itself too: whom a thread waits for, and not who is asked at the terminal.

    Raises:
        BadCommand: it is neither.
    """
    words = split_command(text)
    front = f"uwf-{words[0]}"
    if text.strip() == PERSON:
        return PERSON
    if any(agent.command == front for agent in KNOWN):
        return f"uwf-{text.lstrip()}"
    return text


def tell_adapter(command: str) -> str | None:
    """Say what to type for a command that is a known program, and not its adapter; else None.

    Raises:
        BadCommand: it is no command.
    """
    meant = name_agent(command)
    if meant == command:
        return None
    program = command.split(maxsplit=1)[0]
    return f"{program} has an adapter, which plays roles: `--agent {shlex.quote(meant)}`"


def _find_program(agent: KnownAgent, environ: Mapping[str, str]) -> str | None:
    path = build_search_path(environ.get("PATH", os.defpath))
    for name in agent.programs:
        try:
            return resolve_program(name, path=path, workdir=os.sep)
        except ProgramMissing:
            continue
    return None


def _read_version(path: str | None, environ: Mapping[str, str]) -> str | None:
    if path is None:
        return None
    request = ToolRequest((path, "--version"), environ, _VERSION_TIMEOUT_S, _VERSION_BYTES)
    try:
        ran = run_tool(request, on_output=lambda _: None)
    except (OSError, ValueError):
        return None
    version = _VERSION.search(ran.head + ran.tail)
    return version[0].decode() if version and ran.exit_code == 0 else None
