"""Play one turn with an adapter: settings, context, prompt, question, result; and the help page.

The agent gets the whole prompt in every visit, even when it resumes a conversation, since programs
forget silently. The agent's words and their cost are kept when the turn fails.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from uwf_git.agentkit.context import AgentContext, Step
from uwf_git.agentkit.extraction.adapter import Adapter, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.extract import NoMeta
from uwf_git.agentkit.extraction.ladder import (
    Fallbacks,
    describe_failure,
    extract_with_fallbacks,
)
from uwf_git.agentkit.llm.extractor_settings import find_extractor
from uwf_git.agentkit.loading import load_context, parse_arguments
from uwf_git.agentkit.result import AgentResult
from uwf_git.agentkit.running import run_as_agent
from uwf_git.agentkit.settings import KEYS, load_settings, parse_seconds, parse_words
from uwf_git.agentkit.step_files import (
    open_trace,
    read_reported,
    read_submitted,
    write_failure,
    write_prompt,
)
from uwf_git.engine.prompt import build_prompt
from uwf_git.errors import BadUsage
from uwf_git.model.thread import add_usage

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

_USAGE_STATUS = 2


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
    shared = {key: meaning for key, meaning in KEYS.items() if key not in without}
    meanings = {**shared, **(keys or {})}

    def main() -> int:
        argv = sys.argv[1:]
        if argv[:1] in (["-h"], ["--help"]):
            sys.stdout.write(_build_help(adapter.name, about, meanings, word=word))
            return 0
        try:
            own = parse_arguments(argv).own
            words = parse_words(own, keys=tuple(meanings), word=word)
        except BadUsage as error:
            sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
            return _USAGE_STATUS
        return run_as_agent(
            lambda: play(adapter, words, environ=os.environ, argv=argv),
            is_debug=bool(os.environ.get("UWF_DEBUG")),
        )

    return main


def play(
    adapter: Adapter,
    words: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    argv: Sequence[str],
) -> AgentResult:
    context = load_context(environ, argv)
    settings = load_settings(adapter.name, context.current_role.name, environ=environ, words=words)
    step_dir = environ.get("UWF_STEP_DIR") or None
    question = build_question(adapter, context, settings, environ=environ)
    write_prompt(step_dir, question.prompt)
    with open_trace(environ.get("UWF_TRACE")) as note:
        rungs = Fallbacks(
            reported=lambda: read_reported(
                step_dir, context.workdir, context.current_role.output_file
            ),
            submitted=lambda: read_submitted(step_dir),
            find_extractor=lambda: find_extractor(environ, context.current_role.name),
            note=note,
        )
        try:
            return extract_with_fallbacks(adapter, context, question, rungs)
        except (AskFailed, NoMeta) as failure:
            write_failure(step_dir, describe_failure(failure))
            raise


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
        timeout_s=parse_seconds(settings, "timeout"),
        silence_s=parse_seconds(settings, "silence"),
    )


def _find_session(
    adapter: Adapter, context: AgentContext, resume: str
) -> tuple[str | None, dict[str, Any]]:
    """Return the conversation to resume, and what the role's turns in it have cost."""
    if resume not in ("", "never", "visits"):
        raise BadUsage(f"resume is {resume!r:.100}", hint="resume=visits, or resume=never")
    if resume != "visits" or not adapter.resumes:
        return None, {}
    session: str | None = None
    spent: dict[str, Any] = {}
    for step in _walk_mine(adapter, context):
        session = session or step.session
        # A conversation that was left is never taken up again.
        if step.session is None or step.session != session:
            break
        spent = add_usage(step.usage, spent)
    return session, spent


def _walk_mine(adapter: Adapter, context: AgentContext) -> Iterator[Step]:
    """Yield the role's steps by the same program, newest first; read no more than its visits."""
    visits = context.visit - 1
    for step in reversed(context.steps):
        if visits == 0:
            return
        visits -= step.role == context.current_role.name
        if _is_mine(step, adapter, context):
            yield step


def _is_mine(step: Step, adapter: Adapter, context: AgentContext) -> bool:
    """Return whether the same role took *step* with the same program, which has its session."""
    program = os.path.basename(step.agent.split(maxsplit=1)[0]) if step.agent.strip() else ""
    return step.role == context.current_role.name and program == f"uwf-{adapter.name}"


def _build_help(name: str, about: str, meanings: Mapping[str, str], *, word: str | None) -> str:
    return _HELP.format(
        name=name,
        word=f" '{word.upper()}'" if word else "",
        about=about or f"Play roles with {name}.",
        example=f" '{word.upper()}'" if word else " --model MODEL",
        variable=f"UWF_{name}".upper().replace("-", "_"),
        settings="\n".join(f"  {key:<12}{meaning}" for key, meaning in meanings.items()),
    )
