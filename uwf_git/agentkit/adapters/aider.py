"""uwf-aider: aider plays a role.

aider exits with 0 when the key is wrong and when the model says nothing, and it reformats what it
prints (front matter comes apart). So the answer is the last response in its log of model calls,
where every line is marked. It has no sessions, so an answer cannot be corrected.
"""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import PROVIDER_VARIABLES, adapter_main, option, write_file
from uwf_git.agentkit.records import build_usage, read_left
from uwf_git.agentkit.turn import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    choose_permission,
    split_args,
)
from uwf_git.model.text import parse_float

_ABOUT = """\
Play roles with aider, in the thread's work directory. It edits files without asking, commits
nothing by itself (--args --auto-commits does), and runs no commands. Where there is no git
repository it makes none. It prints nothing while its model thinks. It leaves its map
of the code in .aider.tags.cache.v4, unless --args '--map-tokens 0'. A model is named as aider
names it: openai/NAME, sonnet.
"""

_MESSAGE_FILE = "message.md"
_LOG_FILE = "calls.log"

_ALWAYS = (
    "--yes-always", "--no-stream", "--no-pretty", "--no-fancy-input", "--no-analytics",
    "--no-check-update", "--no-show-model-warnings", "--no-show-release-notes",
    "--no-detect-urls", "--no-gitignore", "--no-auto-commits", "--no-dirty-commits",
    "--no-suggest-shell-commands",
)  # fmt: skip

_PERMISSIONS: dict[str, tuple[str, ...]] = {"edit": (), "dry-run": ("--dry-run",)}

_RESPONSE = "LLM RESPONSE "
_SAID = "ASSISTANT"

_NUMBER = r"([\d.,]+)(k?)"
_TOKENS = re.compile(
    rf"^Tokens: {_NUMBER} sent,(?: {_NUMBER} cache write,)?(?: {_NUMBER} cache hit,)?"
    rf" {_NUMBER} received\.(?: Cost: .*, \$([\d.]+) session\.)?\s*$"
)
# Several lines, since aider wraps it at the width of a terminal.
_FAILURE = re.compile(
    r"^(?:litellm\.|Model .{0,80} has hit a token limit|Unable to )(?:.+(?:\n|\Z))*", re.MULTILINE
)
_EMPTY = "Empty response received"


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    permission = choose_permission(settings, _PERMISSIONS)
    own = os.path.abspath(folder)
    message = write_file(folder, _MESSAGE_FILE, question.prompt)
    argv = ["aider", *_ALWAYS, *_PERMISSIONS[permission], "--message-file", message]
    argv += ["--llm-history-file", os.path.join(own, _LOG_FILE)]
    for name in ("chat", "input"):
        argv += [f"--{name}-history-file", os.path.join(own, f"{name}.history")]
    if not _is_in_repository(question.workdir):
        argv.append("--no-git")
    argv += option("--model", settings.get("model"))
    return ProgramCall((*argv, *split_args(settings)))


def read(ended: EndedProgram) -> Report:
    said = list(_read_responses(ended.folder))
    stdout = ended.run.stdout.decode(errors="replace")
    answer = AdapterAnswer(
        text=said[-1] if said else "",
        usage=_read_usage(stdout, said),
        trace=tuple({"type": "message", "text": text} for text in said[:-1] if text.strip()),
    )
    if answer.text.strip() and not ended.run.exit_code:
        return Report(answer)
    failures = [found[0] for found in _FAILURE.finditer(stdout)]
    if not failures and _EMPTY in stdout:
        raise AskFailed("no-result", "aider's model gave an empty response", partial=answer)
    return Report(answer, has_end=False, error=failures[-1] if failures else None)


def _is_in_repository(workdir: str) -> bool:
    """Return whether git finds a repository there; aider would create one otherwise."""
    place = os.path.abspath(workdir)
    while not os.path.exists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return False
        place = os.path.dirname(place)
    return True


def _read_responses(folder: str) -> Iterator[str]:
    """Yield the responses in the log; an empty text for a call that failed."""
    log = (read_left(folder, _LOG_FILE) or b"").decode(errors="replace")
    lines = log.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines):
        if line.startswith(_RESPONSE):
            places = takewhile(
                lambda at: lines[at].startswith(_SAID), range(number + 1, len(lines))
            )
            yield "\n".join(lines[at].removeprefix(_SAID).removeprefix(" ") for at in places)


def _read_usage(stdout: str, said: list[str]) -> dict[str, Any]:
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


ADAPTER = CommandAdapter(
    name="aider",
    build=build,
    read=read,
    resumes=False,
    environ=("AIDER_*", *PROVIDER_VARIABLES),
    install="pipx install aider-chat (Python below 3.13)",
    login="the key of the model's provider, as OPENAI_API_KEY",
)

main = adapter_main(
    ADAPTER,
    about=_ABOUT,
    keys={"permission": "edit (default), or dry-run: change no files"},
    without=("resume",),
)
