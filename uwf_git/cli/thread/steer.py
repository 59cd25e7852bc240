"""Verbs that steer a thread: resume, retry, patch; and what the others share with them."""

import json
from typing import Any

import click

from uwf_git.agents.command_line import BadReply, parse_reply
from uwf_git.agents.terminal import NoTerminal, Terminal, edit_text
from uwf_git.cli.app.follow_up import describe_result, note_next, view_result
from uwf_git.cli.app.parameters import (
    INPUT,
    Input,
    hint_option,
    message_option,
    read_json_argument,
    read_json_input,
    reason_option,
    text_argument,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of, terminal_caller
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session, write_stderr
from uwf_git.cli.thread.step import emit_step
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    PersonAnswer,
    PersonQuestion,
    answer_thread,
    ask_person,
    build_page,
    kill_thread,
    patch_thread,
    pause_thread,
    read_question,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.turn.turn import ThreadResult, find_problem
from uwf_git.engine.turn_context import parse_context
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.names import parse_node_prefix
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.local_files import find_holder


def emit_steered(
    session: Session, store: Store, steered: ThreadResult, *, is_called: bool = False
) -> None:
    """Print a thread after it was steered, and what to type next (``note_next``)."""
    told = (lambda _: describe_result(session, store, steered)) if session.is_screen else None
    emit(session, view_result(steered), text=told)
    note_next(session, store, steered.thread, is_called=is_called)


@verb(
    "uwf thread resume 01J7K9M2 -m 'the plan is good'",
    exits={1: "the thread is not active, or there is nothing to resume"},
)
@click.argument("thread")
@reason_option
def resume_command(session: Session, thread: str, message: str) -> None:
    """Resume a paused thread.

    It takes no step. A thread that waited, or had failed, when it was paused does so again. One
    that waits for the end of an agent's limit may be tried at once.
    """
    store = session.open_store()
    emit_steered(session, store, resume_thread(store, caller_of(session), thread, reason=message))


@verb(
    "uwf thread retry 01J7K9M2",
    "uwf thread retry 01J7K9M2 -m 'the tests are in spec/, not in tests/'",
    exits={1: "the thread is not active, or has not failed"},
)
@click.argument("thread")
@hint_option
def retry_command(session: Session, thread: str, message: str) -> None:
    """Retry a failed thread.

    Its agent gets all its retries again. This takes no step: `uwf thread step` or `uwf thread run`
    does. The attempts so far stay in the thread; the agent is given the error of the last one, and
    the hint. Of a thread that has split, all branches that have failed are retried.
    """
    store = session.open_store()
    emit_steered(session, store, retry_thread(store, caller_of(session), thread, hint=message))


@verb(
    """uwf thread patch 01J7K9M2 '{"approved": true, "draft": null}' -m 'read by Ann'""",
    "uwf thread patch 01J7K9M2 --file state.json",
    exits={1: "the thread is not active", 2: "it is not JSON, or not an object"},
)
@click.argument("thread")
@click.argument("json", required=False)
@click.option("--file", "file", type=INPUT, help="Read it from a file; `-` is standard input.")
@reason_option
def patch_command(
    session: Session, thread: str, *, json: str | None, file: Input | None, message: str
) -> None:
    """Change the state of a thread by hand.

    JSON is a merge patch (RFC 7396) of the state: its keys are set, null removes, objects are
    merged. A running agent goes on with the state that it began with; its result is merged
    afterwards.
    """
    patch = _read(json, file)
    store, caller = session.open_store(), caller_of(session)
    emit_steered(session, store, patch_thread(store, caller, thread, patch, reason=message))


def _read(text: str | None, file: Input | None) -> Any:
    if (text is None) == (file is None):
        problem = "missing" if text is None else "given twice, as an argument and by --file"
        raise BadUsage(
            f"the patch is {problem}",
            code="one-patch",
            hint="give it as an argument, or with --file FILE; `-` is standard input",
        )
    return read_json_argument(text or "", "the patch") if file is None else read_json_input(file)


# `uwf thread pause` and `uwf thread kill`.


@verb(
    "uwf thread pause 01J7K9M2 -m 'the plan has to be read first'",
    "uwf thread pause 01J7K9M2 --now -m 'it edits the wrong files'",
    exits={
        1: "the thread is not active, or is paused already",
        4: "it is paused, but its agent cannot be ended from here, or the process that ran its "
        "agent does not end",
    },
)
@click.argument("thread")
@click.option("--now", is_flag=True, help="End a running agent, and record its output so far.")
@reason_option
def pause_command(
    session: Session,
    thread: str,
    now: bool,  # noqa: FBT001 (click passes flags so)
    message: str,
) -> None:
    """Pause a thread: no further step until it is resumed.

    A step that is running is finished and recorded. With --now its agent is ended with SIGTERM, and
    killed if it has not ended after 5 seconds; its output so far is recorded as an interrupted
    attempt, which does not count against its retries. If it returns a result even so, that is
    recorded.
    """
    store = session.open_store()
    paused = pause_thread(store, caller_of(session), thread, reason=message, now=now)
    holder = find_holder(store, paused.thread)
    if holder is not None and holder.get("role"):
        note(
            f"note: {holder['role']} is still at work, and its step will be recorded; "
            f"`uwf thread pause {paused.thread} --now` ends it"
        )
    emit_steered(session, store, paused)


@verb(
    "uwf thread kill 01J7K9M2 -m 'the issue was closed'",
    exits={
        1: "the thread is not active",
        4: "its agent, or the process that runs it, cannot be ended from here; such a process ends "
        "the thread after its step",
    },
)
@click.argument("thread")
@reason_option
def kill_command(session: Session, thread: str, message: str) -> None:
    """End a thread and archive it.

    A running agent is ended with SIGTERM, and killed if it has not ended after 5 seconds; its
    output so far is recorded first. Nothing is deleted: the history stays, at refs/archive/.
    """
    store = session.open_store()
    killed = kill_thread(store, caller_of(session), thread, reason=message)
    emit_steered(session, store, killed, is_called=True)


# `uwf thread answer`.


def _answer_missing(question: PersonQuestion) -> BadUsage:
    return BadUsage(
        f"there is no answer; {question.role} is asked for {question.wants}",
        code="no-answer",
        hint=f"give it with `uwf thread answer {question.thread} --meta JSON`, or with --file; "
        "at a terminal you are asked",
        thread=question.thread,
        role=question.role,
        wants=question.wants,
        outputSchema=question.schema,
    )


def _given_twice(what: str, first: str, second: str) -> BadUsage:
    return BadUsage(
        f"the {what} of the answer is given twice, by {first} and by {second}",
        code="given-twice",
        hint="`uwf thread answer --help` tells what each of them holds",
    )


@verb(
    "uwf thread answer 01J7K9M2",
    """uwf thread answer 01J7K9M2 --meta '{"approved": true}' --content 'Well done.'""",
    "uwf thread answer 01J7K9M2 --file review.md -m 'after a talk with Ann'",
    exits={
        1: "no question is open, or the answer does not fit; nothing is recorded",
        4: "another process was faster; nothing is recorded",
    },
)
@click.argument("thread")
@click.option("--meta", metavar="JSON", help="The fields; `-` reads them from standard input.")
@click.option("--content", metavar="TEXT", help="The text that goes with them.")
@click.option("--content-file", type=INPUT, help="Read that text from a file.")
@click.option(
    "--file",
    type=INPUT,
    help="Read the whole answer from a file: JSON, or front matter and a text, as agents print it.",
)
@click.option(
    "--head", metavar="HASH", help="Only if this is still the newest step (see `thread show`)."
)
@message_option("TEXT", "A note, recorded in the commit.")
def answer_command(
    session: Session, thread: str, *, head: str | None, message: str, **given: Any
) -> None:
    """Answer as the role that a thread waits for.

    At a terminal each field is asked for and checked, then a text, and whether to hand them in:
    Enter or y does, n asks for each again and keeps what you said. An answer that does not fit the
    role is refused with every problem, and nothing is recorded. You are the author of its commit.

    A thread need not wait yet: it is enough that the next role is bound to `human`.
    """
    answer = _read_given(given)
    store = session.open_store()
    caller = terminal_caller(session)
    question = read_question(store, caller, thread, default=session.agent)
    if head is not None and not question.head.startswith(parse_node_prefix(head)):
        raise HeadMoved(question.thread)
    if answer is not None:
        answered = answer_thread(store, caller, question, answer._replace(note=message))
    elif session.stdin_is_tty:
        answered = _ask(store, caller, question, message)
    else:
        raise _answer_missing(question)
    emit_step(session, store, answered)


def _read_given(given: dict[str, Any]) -> PersonAnswer | None:
    meta, file = given["meta"], given["file"]
    if meta is not None and file is not None:
        raise _given_twice("whole", "--meta", "--file")
    content = _read_content(given["content"], given["content_file"])
    if file is not None:
        answer = _read_file(file)
        if answer.content and content is not None:
            raise _given_twice("text", "--content", "--file")
        return answer._replace(content=answer.content or content or "")
    if meta is not None:
        return PersonAnswer(read_json_argument(meta, "--meta"), content or "")
    if content is not None:
        raise BadUsage(
            "the answer has a text and no fields",
            code="no-fields",
            hint="give them with --meta JSON; at a terminal, leave the text away to be asked",
        )
    return None


def _read_content(text: str | None, file: Input | None) -> str | None:
    if text is not None and file is not None:
        raise _given_twice("text", "--content", "--content-file")
    if file is not None:
        return file.read_text()
    return None if text is None else text_argument(text, "the text")


def _read_file(file: Input) -> PersonAnswer:
    """Read what an agent might have printed, without its facts about the run."""
    whole = file.read_bytes()
    try:
        reply = parse_reply(whole, protocol="flags")
    except BadReply as error:
        problem = "it is empty" if error.kind == "empty" else error.message
        problem = problem.replace("the agent's ", "the ")
        raise Refused(
            f"{file.name} holds no answer: {problem}",
            code="not-an-answer",
            hint='write JSON: {"meta": {…}, "content": "…"} or the fields alone; or the fields '
            "as YAML between two lines of `---`, and the text below",
            path=file.name,
        ) from None
    # If an agent names no text, its whole output is the text; the JSON of a person is not.
    is_text = reply.content != whole.decode(errors="replace")
    return PersonAnswer(
        reply.meta,
        reply.content if is_text else "",
        state=reply.state,
        usage=reply.usage,
        raw=reply.raw,
        form=reply.form,
    )


def _ask(store: Store, caller: Caller, question: PersonQuestion, message: str) -> ThreadResult:
    try:
        terminal = Terminal(caller.environ, note=note)
    except NoTerminal:
        raise _answer_missing(question) from None
    try:
        answer = _ask_at(terminal, store, caller, question)
    finally:
        terminal.close()
    try:
        return answer_thread(store, caller, question, answer._replace(note=message))
    except UwfError:
        # The person may need the answer once more.
        typed = json.dumps({"meta": answer.meta, "content": answer.content})
        write_stderr(f"{typed}\n")
        note("note: this was your answer; with `--file` it can be given again")
        raise


def _ask_at(
    terminal: Terminal, store: Store, caller: Caller, question: PersonQuestion
) -> PersonAnswer:
    context = parse_context(get_context(store, question.thread, role=question.role))
    terminal.say(build_page(context))
    given = ask_person(
        terminal,
        context.current_role,
        check=lambda value, schema: find_problem(schema, value) or "",
        edit=lambda text: edit_text(terminal, text, environ=caller.environ),
    )
    return PersonAnswer(given.meta, given.content)
