"""The agents with an adapter, and which of their programs are installed.

A test compares the table with the adapters. Programs are only asked for their version.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from uwf_git.agents.command_line import (
    ProgramMissing,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.commands.turn.agent_words import PERSON
from uwf_git.store.git.config import GitConfig

_VERSION = re.compile(rb"\d+(?:\.\d+)+[\w.+-]*")
_VERSION_TIMEOUT_S = 10.0
_VERSION_BYTES = 8192


class KnownAgent(NamedTuple):
    command: str
    """The adapter's command, as a role is bound to it; a person has none."""

    about: str
    programs: tuple[str, ...] = ()
    """The program's names, the likeliest first; empty: the adapter needs no program."""

    install: str = ""

    example: str | None = None
    """An example call, if the command needs arguments."""


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
    KnownAgent(PERSON, "a person; the thread waits for `uwf thread answer`"),
    KnownAgent("uwf-human", "a person at the terminal"),
    KnownAgent("uwf-shell", "a shell command", example="uwf-shell 'make test'"),
    KnownAgent("uwf-mock", "a script, for trying workflows out", example="uwf-mock script.yaml"),
)


class FoundAgent(NamedTuple):
    agent: KnownAgent
    path: str | None
    """The path of its program; None: not installed, or not needed."""

    version: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether it can play a role here."""
        return self.path is not None or not self.agent.programs


def find_agents(environ: Mapping[str, str], *, with_versions: bool) -> list[FoundAgent]:
    """Return every known agent with the path of its program, in the table's order."""
    found = [FoundAgent(agent, _find_program(agent, environ)) for agent in KNOWN]
    if not with_versions:
        return found
    # Node.js starts slowly, so ask in parallel. Imported only for versions.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (see above)

    with ThreadPoolExecutor(max_workers=4) as pool:
        versions = pool.map(lambda each: _read_version(each.path, environ), found)
        return [
            each._replace(version=version) for each, version in zip(found, versions, strict=True)
        ]


def name_agent(text: str) -> str:
    """Return the command that *text* means: ``claude`` is ``uwf-claude``, but ``human`` stays."""
    words = split_command(text)
    front = f"uwf-{words[0]}"
    if text.strip() == PERSON:
        return PERSON
    if any(agent.command == front for agent in KNOWN):
        return f"uwf-{text.lstrip()}"
    return text


def tell_adapter(command: str) -> str | None:
    """Return a hint if *command* is a known program instead of its adapter; else None."""
    meant = name_agent(command)
    if meant == command:
        return None
    program = command.split(maxsplit=1)[0]
    return f"{program} has an adapter, which plays roles: `--agent {shlex.quote(meant)}`"


def find_missing_behind(
    words: Sequence[str], environ: Mapping[str, str], config: GitConfig, role: str
) -> ProgramMissing | None:
    """Return that the program behind the adapter *words*, unless changed, is missing; or None."""
    command = os.path.basename(words[0])
    known = next((each for each in KNOWN if each.command == command and each.programs), None)
    if known is None or _find_program(known, environ):
        return None
    name = command.removeprefix("uwf-")
    settings = (f"uwf.{name}.program", f"uwf.{name}.{role}.program")
    is_named = any(word.startswith("--program") for word in words) or any(map(config.get, settings))
    if is_named or environ.get(f"UWF_{name}_PROGRAM".upper()):
        return None
    problem = f"drives {known.programs[0]}, which is not on the PATH"
    return ProgramMissing(command, problem, hint=f"install it: {known.install}")


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
    from uwf_git.agents.tool import ToolRequest, run_tool  # noqa: PLC0415 (few ask for versions)

    request = ToolRequest((path, "--version"), environ, _VERSION_TIMEOUT_S, _VERSION_BYTES)
    try:
        ran = run_tool(request, on_output=lambda _: None)
    except (OSError, ValueError):
        return None
    version = _VERSION.search(ran.head + ran.tail)
    return version[0].decode() if version and ran.exit_code == 0 else None
