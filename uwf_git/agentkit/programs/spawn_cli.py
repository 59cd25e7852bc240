"""``spawn_cli``: an agent's way to another program. Source: seed 003, ``spawnCli``."""

import os
from collections.abc import Collection, Sequence

from uwf_git.agentkit.adapter import Adapter, AdapterQuestion, AskFailed
from uwf_git.agentkit.turn import record_prompt, trace


def spawn_cli(
    argv: Sequence[str],
    prompt: str,
    *,
    timeout_s: float | None = None,
    silence_s: float | None = None,
    env: Collection[str] = (),
) -> str:
    """Run a program with *prompt*, and return what it printed.

    The prompt is its stdin, unless a word of *argv* holds ``{prompt_file}``, which becomes the path
    of a file with it, or ``{prompt}``, which becomes the prompt itself (at most 128 KiB). No shell
    reads the command. It runs in the current directory, with the variables of model providers and
    those that *env* names. It is ended with this process, after *timeout_s*, and when it has
    printed nothing for *silence_s*. What it prints is the live log.

    The prompt is recorded as that of the step, and the call in its trace.

    Raises:
        AskFailed: it cannot be started, failed, was stopped or printed nothing; ``kind`` says
            which, and ``partial`` has what it had printed.
    """
    record_prompt(prompt)
    name = os.path.basename(argv[0])
    question = AdapterQuestion(
        prompt=prompt,
        step_dir=os.environ.get("UWF_STEP_DIR") or None,
        environ=os.environ,
        timeout_s=timeout_s,
        silence_s=silence_s,
    )
    call = {"type": "tool", "name": name, "input": {"argv": list(argv)}}
    try:
        answer = _build_adapter(name, argv, env).ask(question)
    except AskFailed as failure:
        trace({**call, "output": failure.message, "ok": False})
        raise
    trace({**call, "output": answer.text, "ok": True})
    return answer.text


def _build_adapter(name: str, argv: Sequence[str], env: Collection[str]) -> Adapter:
    # Programs cost 10 ms to import, and most agents start none.
    from uwf_git.agentkit.programs.command import CommandAdapter, build_call, read_output  # noqa: PLC0415 (see above)
    from uwf_git.agentkit.programs.playing import PROVIDER_VARIABLES  # noqa: PLC0415 (see above)

    return CommandAdapter(
        name=name,
        build=lambda question, folder: build_call(argv, question.prompt, folder),
        read=read_output,
        environ=(*PROVIDER_VARIABLES, *env),
        resumes=False,
    )
