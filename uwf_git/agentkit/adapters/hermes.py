"""uwf-hermes: the Hermes agent plays a role.

Owns: how `hermes` is called without a terminal, in its two forms, and what they leave.
Knows nothing of: running it.
Always true: a first question is asked by `hermes -z`, which prints errors as if they were answers
and ends with exit status 0, but writes down whether it ``completed``; that is the verdict. It
ignores ``--resume`` silently, so whoever goes on is asked by `hermes chat -Q -q`, whose exit
status and whose line ``session_id:`` together are the verdict, and which tells no usage.
Both have to be told that nobody is there to be asked: `-z` asks for nothing anyway, and `chat`
would wait for ever. So everything is permitted; nothing of its own holds files or commands to the
work directory. Only its commands can be taken away.
"""

import os
import re
import sys

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.command_adapter import Command, CommandAdapter, Ended, adapter_main
from uwf_git.agentkit.failure_words import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
    require_good_end,
)
from uwf_git.agentkit.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.records import build_usage, find, read_last
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with the Hermes agent (`hermes -z`; `hermes chat` to correct an answer), in the
thread's work directory. Its prompt is an argument, which holds 128 KiB: for longer ones there is
`uwf-acp hermes-acp`. What it does by tools is in its own session alone, and it prints nothing
before it has finished: a --silence would stop it.

What it may do without asking, since nobody is there to be asked (--permission):
  yolo   everything that you may do. The default: it knows nothing in between.
  file   read and edit files, anywhere; it is offered no commands
"""

_LOGIN = "hermes setup, or the key of its provider in the environment"

_KEYS = {"provider": "the provider of the model, as hermes names it"}

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "yolo": ("--yolo",),
    "file": ("--yolo", "--toolsets", "file"),
}

# Linux: 128 KiB with the zero byte at the end.
_LONGEST_ARGUMENT_BYTES = 131_071

_USAGE_FILE = "usage.json"

_SESSION = re.compile(r"^session_id: *(\S+)", re.MULTILINE)
_UNKNOWN_SESSION = b"Session not found"
# What `chat` says about itself, before the answer.
_WARNINGS = re.compile(r"\A(?:(?: {2}⚠.*)?\r?\n)+")
# What it says instead of an answer, and calls completed.
_NO_REPLY = re.compile(r"\A\s*(?:⚠\ufe0f? No reply: .*|\(empty\)\s*\Z)")


def build(asked: Asked, folder: str) -> Command:
    """Build the call that asks *asked*.

    Raises:
        BadUsage: a setting is wrong.
        NoAnswer: the prompt is longer than an argument may be.
    """
    settings = asked.settings
    if len(os.fsencode(_clean(asked.prompt))) > _LONGEST_ARGUMENT_BYTES:
        message = "the prompt is too long for hermes, which takes it as an argument (128 KiB)"
        raise NoAnswer("too-long", message, hint="use `uwf-acp hermes-acp`, which has no limit")
    more = [*_PERMISSIONS[choose_permission(settings, _PERMISSIONS)]]
    for key in ("model", "provider"):
        if settings.get(key):
            more += [f"--{key}", settings[key]]
    more += split_args(settings)
    if asked.session is None:
        usage_file = os.path.abspath(os.path.join(folder, _USAGE_FILE))
        argv = ["hermes", *more, "--usage-file", usage_file, f"--oneshot={_clean(asked.prompt)}"]
    else:
        # It would go to where the session was begun.
        argv = ["hermes", "chat", "-Q", "--source", "tool", "--no-restore-cwd", *more]
        argv += [f"--resume={asked.session}", f"--query={_clean(asked.prompt)}"]
    return Command(tuple(argv))


def parse(ended: Ended) -> Answer:
    """Read what it printed, and the file that it left.

    Raises:
        NoAnswer: it says that it failed, or does not say that it has finished.
    """
    answer = _parse_once(ended) if ended.asked.session is None else _parse_chat(ended)
    if not answer.text.strip() or _NO_REPLY.match(answer.text):
        raise NoAnswer("no-result", "hermes ended well, but its model said nothing", partial=answer)
    return answer


def _clean(prompt: str) -> str:
    """Leave out what no argument can hold."""
    return prompt.replace("\0", "").encode(errors="replace").decode()


def _parse_once(ended: Ended) -> Answer:
    told = find(read_last(os.path.join(ended.folder, _USAGE_FILE)), dict)
    text = ended.run.stdout.decode(errors="replace")
    answer = Answer(
        text=text,
        session=find(told, str, "session_id"),
        usage=build_usage(
            inputTokens=find(told, int, "input_tokens"),
            outputTokens=find(told, int, "output_tokens"),
            cachedInputTokens=find(told, int, "cache_read_tokens"),
            reasoningTokens=find(told, int, "reasoning_tokens"),
            # It says 0 of a model whose price it does not know.
            costUsd=find(told, float, "estimated_cost_usd") or None,
            turns=find(told, int, "api_calls"),
        ),
    )
    if told is None:
        raise explain_no_record("hermes", ended, login=_LOGIN, partial=answer)
    if told.get("failed") is not False or told.get("completed") is not True:
        raise explain_words("hermes", text, login=_LOGIN, partial=answer)
    require_good_end("hermes", ended, answer, after="answer")
    return answer


def _parse_chat(ended: Ended) -> Answer:
    sessions = _SESSION.findall(ended.run.stderr.decode(errors="replace"))
    text = _WARNINGS.sub("", ended.run.stdout.decode(errors="replace"))
    answer = Answer(text=text, session=sessions[-1] if sessions else None)
    if _UNKNOWN_SESSION in ended.run.stderr:
        raise explain_unknown_session("hermes", ended)
    if not sessions:
        raise explain_no_record("hermes", ended, login=_LOGIN, partial=answer)
    if ended.run.exit_code:
        raise explain_words("hermes", text, login=_LOGIN, partial=answer)
    return answer


# One by one: by others it tells what it starts that everything is allowed.
_ENVIRON = (
    "HERMES_HOME", "HERMES_PROFILE", "HERMES_INFERENCE_MODEL", "HERMES_INFERENCE_PROVIDER",
    "HERMES_MAX_TOKENS", "HERMES_LANGUAGE", *PROVIDER_VARIABLES,
)  # fmt: skip

ADAPTER = CommandAdapter(
    name="hermes",
    programs=("hermes",),
    build=build,
    parse=parse,
    resumes=True,
    environ=_ENVIRON,
    install="pipx install hermes-agent",
)

main = adapter_main(ADAPTER, about=_ABOUT, keys=_KEYS)

if __name__ == "__main__":
    sys.exit(main())
