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
import sys

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.records import build_usage, find, read_last
from uwf_git.agentkit.programs.command_adapter import (
    CommandAdapter,
    EndedProgram,
    ProgramCall,
    adapter_main,
)
from uwf_git.agentkit.programs.failures import (
    explain_no_record,
    explain_unknown_session,
    explain_words,
    require_good_end,
)
from uwf_git.agentkit.programs.options import (
    LONGEST_ARGUMENT_BYTES,
    clean_argument,
    setting_options,
)
from uwf_git.agentkit.programs.provider_variables import PROVIDER_VARIABLES
from uwf_git.agentkit.settings import choose_permission, split_args

_ABOUT = """\
Play roles with the Hermes agent (`hermes -z`; `hermes chat` to correct an answer), in the
thread's work directory. Its prompt is an argument, which holds 128 KiB: for longer ones there is
`uwf-acp hermes-acp`. What it does by tools is in its own session alone, and it prints nothing
before it has finished: a --silence would stop it.

What it may do (--permission); nothing is asked, since no person is there to answer:
  yolo   everything that you may do. The default: it knows nothing in between.
  file   read and edit files, anywhere; it is offered no commands
"""

_LOGIN = "hermes setup, or the key of its provider in the environment"

_KEYS = {"provider": "the provider of the model, as hermes names it"}

_PERMISSIONS: dict[str, tuple[str, ...]] = {
    "yolo": ("--yolo",),
    "file": ("--yolo", "--toolsets", "file"),
}

_USAGE_FILE = "usage.json"

_SESSION = re.compile(r"^session_id: *(\S+)", re.MULTILINE)
_UNKNOWN_SESSION = b"Session not found"
# The warnings of `chat` before the answer.
_WARNINGS = re.compile(r"\A(?:(?: {2}⚠.*)?\r?\n)+")
# What it prints in place of an answer, and still calls completed.
_NO_REPLY = re.compile(r"\A\s*(?:⚠\ufe0f? No reply: .*|\(empty\)\s*\Z)")


def build(question: AdapterQuestion, folder: str) -> ProgramCall:
    """Build the call for *question*.

    Raises:
        AskFailed: the prompt is longer than an argument may be.
    """
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


def parse(ended: EndedProgram) -> AdapterAnswer:
    """Read the answer; raise AskFailed if the program reports a failure or no end."""
    answer = _parse_once(ended) if ended.question.session is None else _parse_chat(ended)
    if not answer.text.strip() or _NO_REPLY.match(answer.text):
        raise AskFailed(
            "no-result", "hermes ended well, but its model said nothing", partial=answer
        )
    return answer


def _parse_once(ended: EndedProgram) -> AdapterAnswer:
    told = find(read_last(os.path.join(ended.folder, _USAGE_FILE)), dict)
    text = ended.run.stdout.decode(errors="replace")
    answer = AdapterAnswer(
        text=text,
        session=find(told, str, "session_id"),
        usage=build_usage(
            inputTokens=find(told, int, "input_tokens"),
            outputTokens=find(told, int, "output_tokens"),
            cachedInputTokens=find(told, int, "cache_read_tokens"),
            reasoningTokens=find(told, int, "reasoning_tokens"),
            # It reports 0 for a model whose price it does not know.
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


def _parse_chat(ended: EndedProgram) -> AdapterAnswer:
    sessions = _SESSION.findall(ended.run.stderr.decode(errors="replace"))
    text = _WARNINGS.sub("", ended.run.stdout.decode(errors="replace"))
    answer = AdapterAnswer(text=text, session=sessions[-1] if sessions else None)
    if _UNKNOWN_SESSION in ended.run.stderr:
        raise explain_unknown_session("hermes", ended)
    if not sessions:
        raise explain_no_record("hermes", ended, login=_LOGIN, partial=answer)
    if ended.run.exit_code:
        raise explain_words("hermes", text, login=_LOGIN, partial=answer)
    return answer


# Named one by one: by others it tells its children that everything is allowed.
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
