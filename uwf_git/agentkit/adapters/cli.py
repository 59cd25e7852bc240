"""Programs that print text, not events, play roles: any command, hermes and aider."""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from uwf_git.agentkit import turn
from uwf_git.agentkit.programs import playing
from uwf_git.agentkit.programs.command import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    Report,
    build_call,
    read_output,
)
from uwf_git.agentkit.records import build_usage, find, read_last, read_left, read_usage
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agents.command_line import BadCommand, split_command
from uwf_git.errors import BadUsage
from uwf_git.model.text import parse_float
from uwf_git.surroundings import is_in_repository

# uwf-cli: any command plays a role, without a shell; status 0 and some output make an answer.

_CLI_ABOUT = """\
Play roles with any command that takes a prompt and prints an answer: 'llm -m gpt-4o',
'ollama run llama3'. The prompt is its stdin, unless a word of it holds {prompt_file}, which
becomes the path of a file with the prompt, or {prompt}, which becomes the prompt itself (at
most 128 KiB). No shell reads it; for pipes and variables: 'sh -c "…"'.

A command that fails, or prints nothing, has given no answer. It sees the variables of model
providers; name others by --env.
"""


def build_cli(question: AdapterQuestion, folder: str) -> ProgramCall:
    words = (*_split_cli(question.settings.get("command", "")), *turn.split_args(question.settings))
    return build_call(words, question.prompt, folder)


def _split_cli(command: str) -> tuple[str, ...]:
    if not command.strip():
        raise BadUsage("there is no command", hint="uwf-cli 'llm -m gpt-4o'; see uwf-cli --help")
    try:
        return split_command(command)
    except BadCommand as error:
        raise BadUsage(error.message, hint=error.hint) from error


CLI = CommandAdapter(
    name="cli", build=build_cli, read=read_output, resumes=False, environ=playing.PROVIDER_VARIABLES
)

cli_main = playing.adapter_main(
    CLI,
    about=_CLI_ABOUT,
    keys={"command": "the command, if it is not given as a word"},
    word="command",
    without=("model", "permission", "resume"),
)


# uwf-hermes: the Hermes agent plays a role.
#
# A new session runs `hermes -z`, which prints errors like answers and exits with 0; the verdict is
# ``completed`` in the usage file that it writes. It silently ignores ``--resume``, so a correction
# runs `hermes chat -Q -q`; there the verdict is the exit status with the line ``session_id:``, and
# there is no usage.
# Everything is permitted: `-z` never asks, and `chat` would wait for ever. Nothing confines its
# files or commands to the work directory; only its commands can be taken away.

_HERMES_ABOUT = """\
Play roles with the Hermes agent (`hermes -z`; `hermes chat` to correct an answer), in the
thread's work directory. Its prompt is an argument, which holds 128 KiB: for longer ones there is
`uwf-acp hermes-acp`. What it does by tools is in its own session alone, and it prints nothing
before it has finished: a --silence would stop it.

What it may do (--permission); nothing is asked, since no person is there to answer:
  yolo   everything that you may do. The default: it knows nothing in between.
  file   read and edit files, anywhere; it is offered no commands
"""

_HERMES_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "yolo": ("--yolo",),
    "file": ("--yolo", "--toolsets", "file"),
}

_USAGE_FILE = "usage.json"

_SESSION = re.compile(r"^session_id: *(\S+)", re.MULTILINE)
# The warnings of `chat` before the answer.
_WARNINGS = re.compile(r"\A(?:(?: {2}⚠.*)?\r?\n)+")
# What it prints in place of an answer, and still calls completed.
_NO_REPLY = re.compile(r"\A\s*(?:⚠\ufe0f? No reply: .*|\(empty\)\s*\Z)")


def build_hermes(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    prompt = playing.clean_argument(question.prompt)
    if len(os.fsencode(prompt)) > playing.LONGEST_ARGUMENT_BYTES:
        message = "the prompt is too long for hermes, which takes it as an argument (128 KiB)"
        raise AskFailed("too-long", message, hint="use `uwf-acp hermes-acp`, which has no limit")
    more = [*_HERMES_PERMISSIONS[turn.choose_permission(settings, _HERMES_PERMISSIONS)]]
    more += playing.setting_options(question, ("model", "provider"))
    more += turn.split_args(settings)
    if question.session is None:
        usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
        argv = ["hermes", *more, "--usage-file", usage_file, f"--oneshot={prompt}"]
    else:
        # Otherwise it changes to the directory in which the session began.
        argv = ["hermes", "chat", "-Q", "--source", "tool", "--no-restore-cwd", *more]
        argv += [f"--resume={question.session}", f"--query={prompt}"]
    return ProgramCall(tuple(argv))


def read_hermes(ended: EndedProgram) -> Report:
    report = _read_once(ended) if ended.question.session is None else _read_chat(ended)
    text = report.answer.text
    is_good = report.is_good and not ended.run.exit_code
    if is_good and (not text.strip() or _NO_REPLY.match(text)):
        message = "hermes ended well, but its model said nothing"
        raise AskFailed("no-result", message, partial=report.answer)
    return report


def _read_once(ended: EndedProgram) -> Report:
    told = find(read_last(ended.folder, _USAGE_FILE), dict)
    text = ended.run.stdout.decode(errors="replace")
    usage = read_usage(
        told,
        inputTokens="input_tokens",
        outputTokens="output_tokens",
        cachedInputTokens="cache_read_tokens",
        reasoningTokens="reasoning_tokens",
        costUsd="estimated_cost_usd",
        turns="api_calls",
    )
    if not usage.get("costUsd"):
        # It reports 0 for a model whose price it does not know.
        usage.pop("costUsd", None)
    answer = AdapterAnswer(text=text, session=find(told, str, "session_id"), usage=usage)
    if told is None:
        return Report(answer, has_end=False)
    is_good = told.get("failed") is False and told.get("completed") is True
    return Report(answer, error=None if is_good else text)


def _read_chat(ended: EndedProgram) -> Report:
    sessions = _SESSION.findall(ended.run.stderr.decode(errors="replace"))
    text = _WARNINGS.sub("", ended.run.stdout.decode(errors="replace"))
    answer = AdapterAnswer(text=text, session=sessions[-1] if sessions else None)
    is_failed = bool(sessions and ended.run.exit_code)
    return Report(answer, has_end=bool(sessions), error=text if is_failed else None)


HERMES = CommandAdapter(
    name="hermes",
    build=build_hermes,
    read=read_hermes,
    # Named one by one: by others it tells its children that everything is allowed.
    environ=(
        "HERMES_HOME", "HERMES_PROFILE", "HERMES_INFERENCE_MODEL", "HERMES_INFERENCE_PROVIDER",
        "HERMES_MAX_TOKENS", "HERMES_LANGUAGE", *playing.PROVIDER_VARIABLES,
    ),
    install="pipx install hermes-agent",
    login="hermes setup, or the key of its provider in the environment",
    lost_session="Session not found",
    final="answer",
)  # fmt: skip

_HERMES_KEYS = {"provider": "the provider of the model, as hermes names it"}

hermes_main = playing.adapter_main(HERMES, about=_HERMES_ABOUT, keys=_HERMES_KEYS)


# uwf-aider: aider plays a role.
#
# aider exits with 0 when the key is wrong and when the model says nothing, and it reformats what it
# prints (front matter comes apart). So the answer is the last response in its log of model calls,
# where every line is marked. It has no sessions, so an answer cannot be corrected.

_AIDER_ABOUT = """\
Play roles with aider, in the thread's work directory. It edits files without asking, commits
nothing by itself (--args --auto-commits does), and runs no commands. Where there is no git
repository it makes none. It prints nothing while its model thinks. It leaves its map
of the code in .aider.tags.cache.v4, unless --args '--map-tokens 0'. A model is named as aider
names it: openai/NAME, sonnet.
"""

_LOG_FILE = "calls.log"

_ALWAYS = (
    "--yes-always", "--no-stream", "--no-pretty", "--no-fancy-input", "--no-analytics",
    "--no-check-update", "--no-show-model-warnings", "--no-show-release-notes",
    "--no-detect-urls", "--no-gitignore", "--no-auto-commits", "--no-dirty-commits",
    "--no-suggest-shell-commands",
)  # fmt: skip

_AIDER_PERMISSIONS: dict[str, tuple[str, ...]] = {"edit": (), "dry-run": ("--dry-run",)}

_LOGGED_LINE = "ASSISTANT"

_NUMBER = r"([\d.,]+)(k?)"
_TOKENS = re.compile(
    rf"^Tokens: {_NUMBER} sent,(?: {_NUMBER} cache write,)?(?: {_NUMBER} cache hit,)?"
    rf" {_NUMBER} received\.(?: Cost: .*, \$([\d.]+) session\.)?\s*$"
)
# Several lines, since aider wraps it at the width of a terminal.
_FAILURE = re.compile(
    r"^(?:litellm\.|Model .{0,80} has hit a token limit|Unable to )(?:.+(?:\n|\Z))*", re.MULTILINE
)


def build_aider(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    permission = turn.choose_permission(settings, _AIDER_PERMISSIONS)
    own = os.path.abspath(folder)
    message = playing.write_file(folder, "message.md", question.prompt)
    argv = ["aider", *_ALWAYS, *_AIDER_PERMISSIONS[permission], "--message-file", message]
    argv += ["--llm-history-file", os.path.join(own, _LOG_FILE)]
    for name in ("chat", "input"):
        argv += [f"--{name}-history-file", os.path.join(own, f"{name}.history")]
    if not is_in_repository(question.workdir):
        # It would create one.
        argv.append("--no-git")
    argv += playing.option("--model", settings.get("model"))
    return ProgramCall((*argv, *turn.split_args(settings)))


def read_aider(ended: EndedProgram) -> Report:
    said = list(_read_responses(ended.folder))
    stdout = ended.run.stdout.decode(errors="replace")
    answer = AdapterAnswer(
        text=said[-1] if said else "",
        usage=_read_aider_usage(stdout, said),
        trace=tuple({"type": "message", "text": text} for text in said[:-1] if text.strip()),
    )
    if answer.text.strip() and not ended.run.exit_code:
        return Report(answer)
    failures = [found[0] for found in _FAILURE.finditer(stdout)]
    if not failures and "Empty response received" in stdout:
        raise AskFailed("no-result", "aider's model gave an empty response", partial=answer)
    return Report(answer, has_end=False, error=failures[-1] if failures else None)


def _read_responses(folder: str) -> Iterator[str]:
    """Yield the responses in the log; an empty text for a call that failed."""
    log = (read_left(folder, _LOG_FILE) or b"").decode(errors="replace")
    lines = log.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines):
        if line.startswith("LLM RESPONSE "):
            places = takewhile(
                lambda at: lines[at].startswith(_LOGGED_LINE), range(number + 1, len(lines))
            )
            yield "\n".join(lines[at].removeprefix(_LOGGED_LINE).removeprefix(" ") for at in places)


def _read_aider_usage(stdout: str, said: list[str]) -> dict[str, Any]:
    """Add up the lines with the usage of each call, except those that the model itself wrote."""
    told = [line for line in map(str.rstrip, stdout.split("\n")) if _TOKENS.match(line)]
    for line in (line.rstrip() for text in said for line in text.split("\n")):
        if line in told:
            told.remove(line)
    found = [match for line in told if (match := _TOKENS.match(line))]
    if not found:
        return {}
    return build_usage(
        inputTokens=sum(_number(match[1], match[2]) for match in found),
        outputTokens=sum(_number(match[7], match[8]) for match in found),
        cachedInputTokens=sum(_number(match[5], match[6]) for match in found) or None,
        costUsd=parse_float(found[-1][9] or ""),
        turns=len(found),
    )


def _number(digits: str | None, thousands: str | None) -> int:
    try:
        return round(float((digits or "0").replace(",", "")) * (1000 if thousands else 1))
    except ValueError:
        return 0


AIDER = CommandAdapter(
    name="aider",
    build=build_aider,
    read=read_aider,
    resumes=False,
    environ=("AIDER_*", *playing.PROVIDER_VARIABLES),
    install="pipx install aider-chat (Python below 3.13)",
    login="the key of the model's provider, as OPENAI_API_KEY",
)

aider_main = playing.adapter_main(
    AIDER,
    about=_AIDER_ABOUT,
    keys={"permission": "edit (default), or dry-run: change no files"},
    without=("resume",),
)
