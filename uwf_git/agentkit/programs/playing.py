"""Play one turn with an adapter: settings, context, prompt, question, result; and the help page.

The agent gets the whole prompt in every visit, even when it resumes a conversation, since programs
forget silently. The agent's words and their cost are kept when the turn fails.
"""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from uwf_git.agentkit import turn
from uwf_git.agentkit.ladder import build_wanted_object
from uwf_git.agentkit.running import find_result, make_main, run_as_agent
from uwf_git.agentkit.turn import Adapter, AdapterQuestion, AgentResult, AskFailed
from uwf_git.engine.prompt import build_prompt
from uwf_git.engine.turn_context import AgentContext, Step
from uwf_git.errors import BadUsage
from uwf_git.model.thread import add_usage
from uwf_git.store.durable import find_user_file

# The files that decide which commands run: the store, the user's trust and the user's git config.
#
# An agent that may edit files in its work directory must not edit these, should they lie there.

# Patterns and lists of programs give a meaning to these; `?` stands for any character.
_SPECIAL = re.compile(r"[^\w./-]")


def list_deciding_files(environ: Mapping[str, str]) -> list[str]:
    git_dir, home = environ.get("UWF_REPO"), environ.get("HOME")
    found = [git_dir]
    if git_dir and (trust := find_user_file(git_dir, environ, "trust")):
        # The folder of the trust in all stores.
        found.append(os.path.dirname(os.path.dirname(trust)))
    if home:
        xdg = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        found += [os.path.join(home, ".gitconfig"), os.path.join(xdg, "git")]
    return [each for each in (*found, environ.get("GIT_CONFIG_GLOBAL")) if each]


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Check whether *path* is or lies in any of *folders*, wherever symbolic links lead."""
    real = os.path.realpath(path)
    return any(f"{real}/".startswith(f"{os.path.realpath(each)}/") for each in folders)


def find_store_pattern(environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the store as a pattern without other wildcards than ``?``.

    None outside a turn, and for a project's own `.git`: programs keep their file tools out of it,
    and a rule could stop the git commands that an agent is meant to run.
    """
    git_dir = environ.get("UWF_REPO")
    if not git_dir or os.path.basename(git_dir) == ".git":
        return None
    return _SPECIAL.sub("?", os.path.realpath(git_dir))


# What adapters give to a program: options, files, the schema, `uwf mcp`, variables.
#
# The server `uwf mcp` gets store, thread, role and step by variables. They are part of its entry,
# since many programs start MCP servers with an environment of their own.

# Linux: 128 KiB with the zero byte at the end.
LONGEST_ARGUMENT_BYTES = 131_071


def option(name: str, value: str | None) -> tuple[str, ...]:
    if value and value.startswith("-"):
        # A store of another person may have it, and the program would take it for its option.
        raise BadUsage(f"{name} is {value!r:.100}", hint="name a value that begins without a dash")
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


def find_mcp_entry(question: AdapterQuestion) -> dict[str, Any] | None:
    """Return ``command``, ``args`` and ``env`` of the turn's server; None without, or if off."""
    environ = question.environ
    is_turn = environ.get("UWF_REPO") and environ.get("UWF_THREAD_ID")
    if not is_turn or question.settings.get("mcp") == "off":
        return None
    env = {name: environ[name] for name in (*_OF_THE_TURN, "PYTHONPATH") if environ.get(name)}
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


_HELP = """\
Usage: uwf-{name} [--SETTING VALUE]...{word} THREAD-ID

{about}
The engine appends the thread id; `-t THREAD-ID -r ROLE` is understood as well.

Example: uwf run solve-issue -p "fix #42" --agent "uwf-{name}{example}"

Settings; each is also a variable, {variable}_SETTING, or in git config,
uwf.{name}.SETTING, for one role alone uwf.{name}.ROLE.SETTING:
{settings}

EXIT STATUS: 0 there is a result; 1 there is none: the agent's words are on
stdout, the reason is on stderr; 2 usage; 130 it was stopped from outside.
"""


def adapter_main(
    adapter: Adapter,
    *,
    about: str = "",
    keys: Mapping[str, str] | None = None,
    word: str | None = None,
    without: Collection[str] = (),
) -> Callable[[], int]:
    """Make the ``main`` of an adapter's program.

    *about* is the text of its help page; *keys* are its own settings, each with its meaning;
    *word* is the key of its one positional word, if it takes one; *without* are shared settings
    that have no effect here.
    """
    shared = {key: meaning for key, meaning in turn.KEYS.items() if key not in without}
    meanings = {**shared, **(keys or {})}

    def stop(_number: int, _frame: object) -> None:
        raise AskFailed("interrupted", f"{adapter.name} was stopped from outside")

    def run(argv: list[str]) -> int:
        # While a program runs for it, `deferred_signals` notes them instead.
        signal.signal(signal.SIGTERM, stop)
        words = turn.parse_words(turn.parse_arguments(argv).own, keys=tuple(meanings), word=word)
        return run_as_agent(lambda: play(adapter, words, environ=os.environ, argv=argv))

    return make_main(_build_help(adapter.name, about, meanings, word=word), run)


def play(
    adapter: Adapter,
    words: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    argv: Sequence[str],
) -> AgentResult:
    context = turn.load_context(environ, argv)
    settings = turn.load_settings(
        adapter.name, context.current_role.name, environ=environ, words=words
    )
    question = build_question(adapter, context, settings, environ=environ)
    turn.write_prompt(question.step_dir, question.prompt)
    return find_result(adapter, context, question, reads_step=True)


def build_question(
    adapter: Adapter,
    context: AgentContext,
    settings: Mapping[str, str],
    *,
    environ: Mapping[str, str],
) -> AdapterQuestion:
    session, spent = _find_session(adapter, context, settings.get("resume", ""))
    return AdapterQuestion(
        prompt=build_prompt(context),
        session=session,
        spent=spent,
        workdir=context.workdir or os.curdir,
        step_dir=environ.get("UWF_STEP_DIR") or None,
        settings=settings,
        environ=environ,
        timeout_s=turn.parse_seconds(settings, "timeout"),
        silence_s=turn.parse_seconds(settings, "silence"),
    )


def _find_session(
    adapter: Adapter, context: AgentContext, resume: str
) -> tuple[str | None, dict[str, Any]]:
    """Return the conversation to resume, and what the role's turns in it have cost."""
    if resume not in ("", "never", "visits"):
        raise BadUsage(f"resume is {resume!r:.100}", hint="resume=visits, or resume=never")
    # What a failed try spent in the conversation is in none of its steps.
    if resume != "visits" or not adapter.resumes or context.attempt > 1:
        return None, {}
    session: str | None = None
    spent: dict[str, Any] = {}
    for step in _walk_mine(adapter, context):
        session = session or step.session
        # A conversation that was left is never taken up again.
        if step.session is None or step.session != session:
            break
        # No program names a conversation so, but who has pushed the step may have.
        if session.startswith("-"):
            return None, {}
        spent = add_usage(step.usage, spent)
    return session, spent


def _walk_mine(adapter: Adapter, context: AgentContext) -> Iterator[Step]:
    """Yield the role's steps by the same program, newest first; read no more than its visits."""
    visits = context.visit - 1
    for step in reversed(context.steps):
        if visits == 0:
            return
        if step.role == context.current_role.name:
            visits -= 1
            # The session is the program's, which may stand behind `env NAME=value`.
            if f"uwf-{adapter.name}" in map(os.path.basename, step.agent.split()):
                yield step


def _build_help(name: str, about: str, meanings: Mapping[str, str], *, word: str | None) -> str:
    return _HELP.format(
        name=name,
        word=f" '{word.upper()}'" if word else "",
        about=about or f"Play roles with {name}.",
        example=f" '{word.upper()}'" if word else " --model MODEL",
        variable=f"UWF_{name}".upper().replace("-", "_"),
        settings="\n".join(f"  {key:<12}{meaning}" for key, meaning in meanings.items()),
    )
