"""uwf-hermes: the Hermes agent plays a role.

A new session runs `hermes -z`, which prints errors like answers and exits with 0; the verdict is
``completed`` in the usage file that it writes. It silently ignores ``--resume``, so a correction
runs `hermes chat -Q -q`; there the verdict is the exit status with the line ``session_id:``, and
there is no usage.
Everything is permitted: `-z` never asks, and `chat` would wait for ever. Nothing confines its files
or commands to the work directory; only its commands can be taken away.
"""

import os
import re

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, ProgramCall, Report
from uwf_git.agentkit.programs.playing import (
    LONGEST_ARGUMENT_BYTES,
    PROVIDER_VARIABLES,
    adapter_main,
    clean_argument,
    setting_options,
)
from uwf_git.agentkit.records import find, read_last, read_usage
from uwf_git.agentkit.turn import (
    AdapterAnswer,
    AdapterQuestion,
    AskFailed,
    choose_permission,
    split_args,
)

_ABOUT = """\
Play roles with the Hermes agent (`hermes -z`; `hermes chat` to correct an answer), in the
thread's work directory. Its prompt is an argument, which holds 128 KiB: for longer ones there is
`uwf-acp hermes-acp`. What it does by tools is in its own session alone, and it prints nothing
before it has finished: a --silence would stop it.

What it may do (--permission); nothing is asked, since no person is there to answer:
  yolo   everything that you may do. The default: it knows nothing in between.
  file   read and edit files, anywhere; it is offered no commands
"""

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "yolo": ("--yolo",),
    "file": ("--yolo", "--toolsets", "file"),
}

_USAGE_FILE = "usage.json"

_SESSION = re.compile(r"^session_id: *(\S+)", re.MULTILINE)
# The warnings of `chat` before the answer.
_WARNINGS = re.compile(r"\A(?:(?: {2}⚠.*)?\r?\n)+")
# What it prints in place of an answer, and still calls completed.
_NO_REPLY = re.compile(r"\A\s*(?:⚠\ufe0f? No reply: .*|\(empty\)\s*\Z)")


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    settings = question.settings
    prompt = clean_argument(question.prompt)
    if len(os.fsencode(prompt)) > LONGEST_ARGUMENT_BYTES:
        message = "the prompt is too long for hermes, which takes it as an argument (128 KiB)"
        raise AskFailed("too-long", message, hint="use `uwf-acp hermes-acp`, which has no limit")
    more = [*_PERMISSIONS[choose_permission(settings, _PERMISSIONS)]]
    more += setting_options(question, ("model", "provider"))
    more += split_args(settings)
    if question.session is None:
        usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
        argv = ["hermes", *more, "--usage-file", usage_file, f"--oneshot={prompt}"]
    else:
        # Otherwise it changes to the directory in which the session began.
        argv = ["hermes", "chat", "-Q", "--source", "tool", "--no-restore-cwd", *more]
        argv += [f"--resume={question.session}", f"--query={prompt}"]
    return ProgramCall(tuple(argv))


def read(ended: EndedProgram) -> Report:
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


# Named one by one: by others it tells its children that everything is allowed.
_ENVIRON = (
    "HERMES_HOME", "HERMES_PROFILE", "HERMES_INFERENCE_MODEL", "HERMES_INFERENCE_PROVIDER",
    "HERMES_MAX_TOKENS", "HERMES_LANGUAGE", *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="hermes",
    build=build,
    read=read,
    environ=_ENVIRON,
    install="pipx install hermes-agent",
    login="hermes setup, or the key of its provider in the environment",
    lost_session="Session not found",
    final="answer",
)

_KEYS = {"provider": "the provider of the model, as hermes names it"}

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)
