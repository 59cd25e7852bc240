"""`uwf thread start`, and what `uwf run` shares with it."""

from typing import TYPE_CHECKING, Any

import click

from uwf_git.cli.app.follow_up import note_next
from uwf_git.cli.app.json_argument import not_json, read_json_argument
from uwf_git.cli.app.parameters import (
    PROMPT_OPTIONS,
    agents_option,
    limit_options,
    no_prompt,
    read_prompt,
    with_options,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.cli.workflow.show import note_local
from uwf_git.commands.lifecycle.start import Started, StartRequest, start_thread
from uwf_git.errors import Refused
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.commands.control.change_rules import Amended

# What `uwf thread start` and `uwf run` share: what a thread begins with.


def _read_request(given: dict[str, Any]) -> None:
    given["request"] = StartRequest(
        given.pop("workflow"),
        read_prompt(given.pop("prompt_text"), given.pop("prompt_file")),
        given.pop("agents"),
        workdir=given.pop("workdir"),
        limits=given.pop("limits"),
        state=_read_state(given.pop("state")),
    )


start_options = with_options(
    _read_request,
    click.argument("workflow"),
    *PROMPT_OPTIONS,
    click.option(
        "--state", metavar="JSON", help="Members of the state that the thread begins with."
    ),
    agents_option("The agent of a role, or of every role; may be repeated."),
    click.option(
        "--workdir", metavar="PATH", help="Where the agents run.  [default: the current directory]"
    ),
    limit_options,
)
"""Add the argument ``request: StartRequest`` to a verb, and the options that make it."""


def begin_thread(session: Session, store: Store, request: StartRequest) -> Started:
    """Create the thread; $UWF_AGENT is its default agent."""
    request = request._replace(default_agent=session.agent)
    try:
        return start_thread(store, caller_of(session), request, thread=session.new_thread_id())
    except Refused as error:
        if error.code != "empty-prompt":
            raise
        raise no_prompt("there is no prompt") from None


def _read_state(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    state = read_json_argument(text, "the state")
    if not isinstance(state, dict):
        raise not_json("the state", "it is no object")
    return state


@verb(
    "uwf thread start solve-issue -p 'Fix the login bug of issue 42'",
    "uwf thread start solve-issue --prompt-file issue.md --agent developer=uwf-cursor",
    """uwf thread start develop -p x --agent 'developer={"command": "dev", "protocol": "flags"}'""",
    "uwf thread start solve-issue -p x --agent developer=@developer.yaml",
    exits={1: "there is no such workflow or role"},
)
@start_options
def start_command(session: Session, request: StartRequest) -> None:
    """Create a thread without running a step.

    WORKFLOW is the name of a file in .workflows (of the current directory, or above it in the git
    repository), else of a registered workflow, else of one that uwf brings; or the hash of any
    version of a workflow.

    The agents of the roles are fixed now: --agent, else the workflow's agentOverrides, else its
    defaultAgent, else $UWF_AGENT, else the setting uwf.agent. A role that has none of these takes
    $UWF_AGENT or uwf.agent when its turn comes. A CMD for every role leaves those that
    agentOverrides binds to human, uwf-human, uwf-shell or uwf-check; ROLE=CMD replaces them. Limits
    that are not given are those of the workflow's config; `none` is no limit. A workflow of
    containers needs no prompt: it has its description.

    An agent is called as `CMD THREAD`, or with the protocol `flags` as `CMD -t THREAD -r ROLE`, and
    then prints the meta alone. Its settings are given in place of CMD, as JSON or in a YAML file:
    command, protocol, timeout (seconds), retries, backoff (seconds), env. Settings without a
    command change the agent that the role has anyway.
    """
    store = session.open_store(create=True)
    started = begin_thread(session, store, request)
    note_found(started)
    note_unbound(started)
    note_missing(started)
    emit(session, {"workflow": started.workflow, "thread": started.thread})
    note_next(session, store, started.thread, is_called=True)


def note_found(started: Started) -> None:
    """Note that the workflow is a file of the project."""
    found = started.found
    note_local(found.workflow.name, found.file, found.shadows)
    note_left(started.left)


def note_left(roles: tuple[str, ...]) -> None:
    """Note which roles a command for every role does not play."""
    if roles:
        note(
            f"note: {', '.join(roles)} is left to its person or check; `--agent {roles[0]}=CMD` "
            "names another agent"
        )


def note_unbound(started: Started) -> None:
    """Note which roles have no agent yet."""
    if started.unbound:
        note(
            f"note: no agent is bound to {', '.join(started.unbound)}; `uwf config set agent CMD` "
            "sets a default"
        )


def note_missing(given: "Started | Amended") -> None:
    """Note which agents are not found here: a step would fail, unless it runs elsewhere."""
    for roles, error in given.missing:
        note(
            f"note: {error.message}, and is to play {', '.join(roles)}; unless the thread runs "
            f"elsewhere, `uwf thread amend {given.thread} --agent {roles[0]}=CMD` names another"
        )
