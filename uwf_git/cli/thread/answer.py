"""`uwf thread answer`."""

import json
from typing import Any

import click

from uwf_git.agents.reply import BadReply, parse_reply
from uwf_git.agents.terminal import NoTerminal, Terminal, edit_text
from uwf_git.cli.app.json_argument import read_json_argument
from uwf_git.cli.app.parameters import INPUT, Input, text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import terminal_caller
from uwf_git.cli.output.screen import note
from uwf_git.cli.session import Session, write_stderr
from uwf_git.cli.thread.step import emit_step
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    PersonAnswer,
    PersonQuestion,
    answer_thread,
    ask_person,
    build_page,
    read_question,
)
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.turn.turn import ThreadResult, find_problem
from uwf_git.engine.turn_context import parse_context
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.names import parse_node_prefix
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved


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
@click.option("-m", "--message", default="", metavar="TEXT", help="A note, recorded in the commit.")
def command(session: Session, thread: str, *, head: str | None, message: str, **given: Any) -> None:
    """Answer as the role that a thread waits for.

    At a terminal each field is asked for and checked, then a text, and whether to hand them in:
    Enter or y does, n asks for each again and keeps what you said. An answer that does not fit the
    role is refused with every problem, and nothing is recorded. You are the author of its commit.

    A thread need not wait yet: it is enough that the next role is bound to `human`.
    """
    answer = _read_given(given)
    text_argument(message, "the note")
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
