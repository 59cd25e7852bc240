"""uwf-aider: aider plays a role.

Owns: how `aider` is called for one message, and what it leaves.
Knows nothing of: running it.
Always true: its exit status is 0 when the key is wrong and when the model says nothing, and what
it prints is laid out anew (front matter comes apart). So the verdict, and the text, is the last
response in the log of its calls of the model, where every line of it is marked as such.
It has no sessions: nobody can be asked again.
"""

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import explain_no_record, explain_words
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import build_usage
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with aider, in the thread's work directory. It edits files without asking, commits
nothing by itself (--args --auto-commits does), and runs no commands. Where there is no git
repository it is told to make none. It prints nothing while its model thinks. It leaves its map
of the code in .aider.tags.cache.v4, unless --args '--map-tokens 0'. A model is named as aider
names it: openai/NAME, sonnet.
"""

_LOGIN = "the key of the model's provider, as OPENAI_API_KEY"

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
# It goes on over lines, for it is broken where a terminal would end.
_FAILURE = re.compile(
    r"^(?:litellm\.|Model .{0,80} has hit a token limit|Unable to )(?:.+(?:\n|\Z))*", re.MULTILINE
)
_EMPTY = "Empty response received"


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*; its prompt goes into a file in *folder*.

    Raises:
        BadUsage: a setting is wrong.
    """
    settings = asked.settings
    permission = choose_permission(settings, _PERMISSIONS)
    own = os.path.abspath(folder)
    message = os.path.join(own, _MESSAGE_FILE)
    with open(message, "w", encoding="utf-8", errors="replace") as file:
        file.write(asked.prompt)
    argv = ["aider", *_ALWAYS, *_PERMISSIONS[permission], "--message-file", message]
    argv += ["--llm-history-file", os.path.join(own, _LOG_FILE)]
    for name in ("chat", "input"):
        argv += [f"--{name}-history-file", os.path.join(own, f"{name}.history")]
    if not _is_in_repository(asked.workdir):
        argv.append("--no-git")
    if settings.get("model"):
        argv += ["--model", settings["model"]]
    return Command((*argv, *split_args(settings)))


def parse(ended: Ended) -> Answer:
    """Read what it printed, and the log that it left.

    Raises:
        NoAnswer: the model gave no answer.
    """
    said = list(_read_responses(ended.folder))
    stdout = ended.run.stdout.decode(errors="replace")
    answer = Answer(
        text=said[-1] if said else "",
        usage=_read_usage(stdout, said),
        trace=tuple({"type": "message", "text": text} for text in said[:-1] if text.strip()),
    )
    if not said or not answer.text.strip() or ended.run.exit_code:
        raise _explain(ended, stdout, answer)
    return answer


def _is_in_repository(workdir: str) -> bool:
    """Tell whether git would find a repository there; aider would make one otherwise."""
    place = os.path.abspath(workdir)
    while not os.path.exists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return False
        place = os.path.dirname(place)
    return True


def _read_responses(folder: str) -> Iterator[str]:
    """Give the responses in the log; of a call that failed, an empty text."""
    try:
        with open(os.path.join(folder, _LOG_FILE), encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return
    for number, line in enumerate(lines):
        if line.startswith(_RESPONSE):
            yield "\n".join(_said_after(lines, number + 1))


def _said_after(lines: list[str], number: int) -> Iterator[str]:
    while number < len(lines) and lines[number].startswith(_SAID):
        yield lines[number].removeprefix(_SAID).removeprefix(" ")
        number += 1


def _read_usage(stdout: str, said: list[str]) -> dict[str, Any]:
    """Add up what was told of every call; a line that the model itself said does not count."""
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
        costUsd=float(found[-1][9]) if found[-1][9] else None,
        turns=len(found),
    )


def _number(digits: str | None, thousands: str | None) -> int:
    """Read a number as aider rounds it: 950, 1.2k, 12k."""
    try:
        return round(float((digits or "0").replace(",", "")) * (1000 if thousands else 1))
    except ValueError:
        return 0


def _explain(ended: Ended, stdout: str, answer: Answer) -> NoAnswer:
    failures = [found[0] for found in _FAILURE.finditer(stdout)]
    if failures:
        return explain_words("aider", failures[-1], login=_LOGIN, partial=answer)
    if _EMPTY in stdout:
        return NoAnswer("no-result", "aider's model gave an empty response", partial=answer)
    return explain_no_record("aider", ended, login=_LOGIN, partial=answer)


ADAPTER = CommandAdapter(
    name="aider",
    programs=("aider",),
    build=build,
    parse=parse,
    environ=("AIDER_*", *PROVIDER_VARIABLES),
    install="pipx install aider-chat (Python below 3.13)",
)

main = adapter_main(
    ADAPTER, about=_ABOUT, keys={"permission": "edit (default), or dry-run: change no files"}
)

if __name__ == "__main__":
    sys.exit(main())
