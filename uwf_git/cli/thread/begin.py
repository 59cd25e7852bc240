"""What `uwf thread start` and `uwf run` share: the task and the state that a thread begins with."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.app.json_argument import not_json, read_json_argument
from uwf_git.cli.app.parameters import no_prompt, prompt_options
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.lifecycle.start import EmptyPrompt, Started, StartRequest, start_thread
from uwf_git.store.store import Store


class Task(NamedTuple):
    """What a thread begins with."""

    prompt: str | None
    state: dict[str, Any] | None


def task_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``task: Task`` to a verb, from the options of prompt and state."""

    def with_task(*args: Any, prompt: str | None, state: str | None, **others: Any) -> Any:
        return function(*args, task=Task(prompt, _read_state(state)), **others)

    wrapped: Callable[..., Any] = update_wrapper(with_task, function)
    wrapped = click.option(
        "--state",
        metavar="JSON",
        help="Members of the state that the thread begins with.",
    )(wrapped)
    return prompt_options(required=False)(wrapped)


def begin_thread(session: Session, store: Store, request: StartRequest) -> Started:
    """Create the thread.

    Raises:
        BadUsage: it has no prompt, and its workflow is no flow, which has its description.
        What ``start_thread`` raises.
    """
    try:
        return start_thread(store, caller_of(session), request, thread=session.new_thread_id())
    except EmptyPrompt:
        raise no_prompt("there is no prompt") from None


def _read_state(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    state = read_json_argument(text, "the state")
    if not isinstance(state, dict):
        raise not_json("the state", "it is no object")
    return state
