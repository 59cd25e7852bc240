"""uwf-react: a model with tools plays a role.

A correction is answered without tools. File tools reach the work directory only; the shell, which
has no such limit, can be removed.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from uwf_git.agentkit.adapter import AdapterAnswer, AdapterQuestion
from uwf_git.agentkit.llm.endpoint import (
    ENDPOINT_KEYS,
    Endpoint,
    get_setting,
    read_endpoint,
    read_whole,
)
from uwf_git.agentkit.llm.http_client import RetryPolicy
from uwf_git.agentkit.llm.messages import Conversations, Message
from uwf_git.agentkit.llm.model import Model
from uwf_git.agentkit.programs.playing import adapter_main, list_deciding_files
from uwf_git.agentkit.react.loop import Loop, LoopLimits
from uwf_git.agentkit.react.tools import Surroundings, ToolFailed, build_toolbox, open_work_folder
from uwf_git.agentkit.settings import load_settings, plain_key
from uwf_git.agentkit.turn import extend_prompt, load_context
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage

_ABOUT = """\
Play roles with a model that has tools: read_file, write_file, patch_file, list_files,
shell and fetch_thread. The file tools stay in the work directory, also through symbolic
links, and write neither git directories nor what decides which commands you trust.

The shell is no sandbox. It starts in the work directory with a time limit and without
your keys, but it can read, write and reach all that you can. `shell = false` removes it.

Settings that react does not have come from those of uwf-llm: model, url, api, key-env.
"""

_KEYS = {
    **ENDPOINT_KEYS,
    "shell": "false takes the shell away",
    "turns": "the most turns of the model (50 unless set)",
    "tokens": "the most tokens of all turns together (2000000 unless set)",
}

_TURNS = 50
_TOKENS = 2_000_000
_TIMEOUT_S = 3_600.0

_SYSTEM = """\
You work with tools in the directory {root}. Paths are relative to it, and the file tools reach \
nothing outside of it{shell}. Look before you change something, and check what you have changed. \
Say only what you have seen: a file that you did not write is not there, and a test that you did \
not run has not passed.

When your work is done, call submit_result, once: `content` is the text of your answer, and `meta` \
are the fields that the prompt asks for in front matter; then there is no front matter."""

_SYSTEM_WITHOUT_FIELDS = "When your work is done, answer in words, without calling a tool."


@dataclass(slots=True)
class ReactAdapter:
    name: str = "react"
    takes_schema: bool = True
    resumes: bool = True
    retries: RetryPolicy = RetryPolicy()  # noqa: RUF009 (a tuple of constants)
    _conversations: Conversations = field(default_factory=lambda: Conversations("react"))
    _models: dict[Endpoint, Model] = field(default_factory=dict)

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Run the loop; in a conversation that goes on, only ask for the answer again."""
        settings = _with_llm(question)
        environ = question.environ
        endpoint = read_endpoint(settings, environ, section="uwf.react")
        model = self._models.setdefault(endpoint, Model(endpoint, environ, self.retries))
        session, messages = self._conversations.begin(question.prompt, question.session)
        loop = _build_loop(question, settings, model, messages)
        extend_prompt(question.step_dir, question.prompt, f"{question.prompt}\n{loop.system}\n")
        # A correction is about the fields; the model must not start to work again.
        ended = loop.run() if question.session is None else loop.answer_now()
        self._conversations.keep(session, ended.messages)
        return replace(ended.answer, session=session)


def _with_llm(question: AdapterQuestion) -> dict[str, str]:
    """Return the settings, with those of uwf-llm for the ones that are missing."""
    role = question.environ.get("UWF_ROLE", "")
    llm = load_settings("llm", role, environ=question.environ, words={})
    shared = {"model", *map(plain_key, ENDPOINT_KEYS)}
    theirs = {plain_key(name): value for name, value in llm.items() if plain_key(name) in shared}
    return theirs | {plain_key(name): value for name, value in question.settings.items()}


def _build_loop(
    question: AdapterQuestion,
    settings: Mapping[str, str],
    model: Model,
    messages: tuple[Message, ...],
) -> Loop:
    environ = question.environ
    try:
        folder = open_work_folder(question.workdir, kept=list_deciding_files(environ))
    except ToolFailed as failure:
        raise BadUsage(failure.message) from failure
    has_shell = _read_flag(settings, "shell")
    deadline = time.monotonic() + (question.timeout_s or _TIMEOUT_S)
    seen = allowed_environment(environ, more=question.settings.get("env", "").split())
    seen.pop(model.endpoint.key_name, None)

    def around() -> Surroundings:
        return Surroundings(seen, question.step_dir, max(1.0, deadline - time.monotonic()))

    thread = environ.get("UWF_THREAD_ID") if environ.get("UWF_REPO") else None
    toolbox = build_toolbox(
        folder,
        thread=cache(lambda: load_context(environ, (thread,))) if thread else None,
        around=around if has_shell else None,
    )
    turns = _read_number(settings, "turns", _TURNS)
    limits = LoopLimits(turns, _read_number(settings, "tokens", _TOKENS), deadline)
    shell = "; the shell starts there, too" if has_shell else "; there is no shell"
    system = _SYSTEM.format(root=folder.root, shell=shell)
    if question.schema is None:
        system = system.partition("When your work is done")[0] + _SYSTEM_WITHOUT_FIELDS
    return Loop(model, toolbox, limits, system, question.schema, messages)


def _read_flag(settings: Mapping[str, str], key: str) -> bool:
    text = get_setting(settings, key).lower()
    if text in {"", "true", "yes", "on", "1"}:
        return True
    if text in {"false", "no", "off", "0"}:
        return False
    raise BadUsage(f"uwf.react.{key} is {text!r:.100}", hint="it is true or false")


def _read_number(settings: Mapping[str, str], key: str, default: int) -> int:
    text = get_setting(settings, key)
    return read_whole(text, f"uwf.react.{key}") if text else default


# These settings are about a program; conversations end with this process.
_WITHOUT = ("permission", "args", "program", "silence", "resume")

main = adapter_main(ReactAdapter(), about=_ABOUT, keys=_KEYS, without=_WITHOUT)
