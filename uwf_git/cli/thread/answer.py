"""`uwf thread answer`."""

import json
from typing import Any

import click

from uwf_git.agents.terminal import NoTerminal, Terminal
from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.json_argument import read_json_argument
from uwf_git.cli.parameters import INPUT, Input, text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stderr
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.cli.verb import verb
from uwf_git.commands.caller import Caller
from uwf_git.commands.stepped import Stepped
from uwf_git.commands.thread_answer import Answer, Question, answer_thread, read_question
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.node_hash import parse_node_prefix
from uwf_git.store.heads import HeadMoved
from uwf_git.store.store import Store


class NoAnswer(BadUsage):
    """Nothing was given, and there is nobody to ask."""

    code = "no-answer"

    def __init__(self, question: Question) -> None:
        super().__init__(
            f"there is no answer; {question.role} is asked for {question.wants}",
            hint=f"give it with `uwf thread answer {question.thread} --meta JSON`, or with --file; "
            "at a terminal you are asked",
            thread=question.thread,
            role=question.role,
            wants=question.wants,
            outputSchema=question.schema,
        )


class GivenTwice(BadUsage):
    """Two options give the same part of the answer."""

    code = "given-twice"

    def __init__(self, what: str, first: str, second: str) -> None:
        super().__init__(
            f"the {what} of the answer is given twice, by {first} and by {second}",
            hint="`uwf thread answer --help` tells what each of them holds",
        )


class NoFields(BadUsage):
    """There is a text, and nothing that the role's schema is about."""

    code = "no-fields"

    def __init__(self) -> None:
        super().__init__(
            "the answer has a text and no fields",
            hint="give them with --meta JSON; at a terminal, leave the text away to be asked",
        )


class NotAnAnswer(Refused):
    """The file holds nothing that could be an answer."""

    code = "not-an-answer"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"{name} holds no answer: {problem}",
            hint='write JSON: {"meta": {…}, "content": "…"} or the fields alone; or the fields '
            "as YAML between two lines of `---`, and the text below",
            path=name,
        )


@verb(
    "uwf thread answer 01J7K9M2",
    """uwf thread answer 01J7K9M2 --meta '{"approved": true}' --content 'Well done.'""",
    "uwf thread answer 01J7K9M2 --file review.md -m 'after a talk with Ann'",
    exits={
        1: "nobody is asked anything, or the answer does not fit; nothing is recorded",
        4: "somebody else was faster; nothing is recorded",
    },
)
@click.argument("thread")
@click.option("--meta", metavar="JSON", help="The fields; `-` reads them from standard input.")
@click.option("--content", metavar="TEXT", help="The text that goes with them.")
@click.option("--content-file", type=INPUT, help="Read that text from a file.")
@click.option(
    "--file",
    type=INPUT,
    help="Read all of it from a file, as an agent may print it: JSON, or front matter and a text.",
)
@click.option(
    "--head", metavar="HASH", help="Only if this is still the newest step, as `thread show` says."
)
@click.option("-m", "--message", default="", metavar="TEXT", help="A note that stands in the log.")
def command(session: Session, thread: str, *, head: str | None, message: str, **given: Any) -> None:
    """Answer as the role that a thread waits for.

    At a terminal each field is asked for and checked, then a text. An answer that does not fit
    the role is refused with all that is wrong, and nothing is recorded. You are the author of its
    commit.

    A thread need not wait yet: it is enough that the role whose turn it is is bound to `human`.
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
        raise NoAnswer(question)
    emit(
        session,
        {
            "workflow": answered.workflow,
            "thread": answered.thread,
            "head": answered.head,
            "status": answered.status,
            "role": answered.role,
        },
    )
    pack_when_due(session, store)


def _read_given(given: dict[str, Any]) -> Answer | None:
    """Read what the options give; None if they give nothing."""
    meta, file = given["meta"], given["file"]
    if meta is not None and file is not None:
        raise GivenTwice("whole", "--meta", "--file")
    content = _read_content(given["content"], given["content_file"])
    if file is not None:
        answer = _read_file(file)
        if answer.content and content is not None:
            raise GivenTwice("text", "--content", "--file")
        return answer._replace(content=answer.content or content or "")
    if meta is not None:
        return Answer(read_json_argument(meta, "--meta"), content or "")
    if content is not None:
        raise NoFields
    return None


def _read_content(text: str | None, file: Input | None) -> str | None:
    if text is not None and file is not None:
        raise GivenTwice("text", "--content", "--content-file")
    if file is not None:
        return file.read_text()
    return None if text is None else text_argument(text, "the text")


def _read_file(file: Input) -> Answer:
    """Read what an agent might have printed; how it came about is a machine's to say.

    Raises:
        NotAnAnswer: it is none.
    """
    from uwf_git.agents.reply import (  # noqa: PLC0415 (few give a file)
        BadReply,
        parse_reply,
    )

    whole = file.read_bytes()
    try:
        reply = parse_reply(whole, protocol="flags")
    except BadReply as error:
        problem = "it is empty" if error.kind == "empty" else error.message
        raise NotAnAnswer(file.name, problem.replace("the agent's ", "the ")) from None
    # An agent's whole output is its text where it named none; a person's JSON is no text.
    is_text = reply.content != whole.decode(errors="replace")
    return Answer(
        reply.meta,
        reply.content if is_text else "",
        state=reply.state,
        usage=reply.usage,
        raw=reply.raw,
    )


def _ask(store: Store, caller: Caller, question: Question, message: str) -> Stepped:
    """Ask at the terminal, and record what was answered.

    Raises:
        NoAnswer: there is no terminal to ask at.
        Left: it was closed before all was answered.
        What ``answer_thread`` raises; what was typed is on standard error then.
    """
    try:
        terminal = Terminal(caller.environ, note=note)
    except NoTerminal:
        raise NoAnswer(question) from None
    try:
        answer = _ask_at(terminal, store, caller, question)
    finally:
        terminal.close()
    try:
        return answer_thread(store, caller, question, answer._replace(note=message))
    except UwfError:
        # Somebody has thought about it, and may need it once more.
        typed = json.dumps({"meta": answer.meta, "content": answer.content})
        write_stderr(f"{typed}\n")
        note("note: this was your answer; with `--file` it can be given again")
        raise


def _ask_at(terminal: Terminal, store: Store, caller: Caller, question: Question) -> Answer:
    # The page and the form are for those alone who are asked.
    from uwf_git.agents.editor import edit_text  # noqa: PLC0415 (see above)
    from uwf_git.commands.ask_person import ask_person, build_page  # noqa: PLC0415 (see above)
    from uwf_git.commands.check_meta import find_problem  # noqa: PLC0415 (see above)
    from uwf_git.commands.thread_context import get_context  # noqa: PLC0415 (see above)
    from uwf_git.engine.turn_context import parse_context  # noqa: PLC0415 (see above)

    context = parse_context(get_context(store, question.thread, role=question.role))
    terminal.say(build_page(context))
    given = ask_person(
        terminal,
        context.current_role,
        check=lambda value, schema: find_problem(schema, value) or "",
        edit=lambda text: edit_text(terminal, text, environ=caller.environ),
    )
    return Answer(given.meta, given.content)
