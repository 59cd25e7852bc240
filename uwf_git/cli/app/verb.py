"""Verbs: each takes the shared options, gets the session first, and ends its help alike."""

from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from uwf_git.cli.app.lazy_group import (
    is_shared,
    shared_options,
    write_brief_ending,
    write_examples,
    write_options,
)
from uwf_git.cli.session import Session
from uwf_git.model.text import cut, one_line
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.commands.inspect import list as offers
    from uwf_git.commands.inspect.list import Candidate
else:
    offers = Lazy("uwf_git.commands.inspect.list")  # 60 ms; only a shell asks

# Completion of the names that only the store knows: threads, workflows, roles, remotes.
#
# The name of a parameter says what it takes, so no verb has to. click calls this while a person
# types; the boundary drops every failure.

_ENDED = frozenset({"completed", "killed"})

# Which threads a verb can do something with; the others take the active ones.
_STATUSES = {
    "answer": frozenset({"waiting"}),
    "resume": frozenset({"paused"}),
    "retry": frozenset({"failed"}),
    "rm": _ENDED,
}
_LOOKING = {
    "context", "diff", "events", "files", "fork", "graph", "logs", "push", "read", "report",
    "restore", "show", "take", "verify", "wait",
}  # fmt: skip


def _items(candidates: "Iterable[Candidate]") -> "list[CompletionItem]":
    """Return the names with a short line each: it may be an agent's, and goes to a terminal."""
    most = 72
    found = ((each.word, each.meaning[: 4 * most]) for each in candidates)
    return [CompletionItem(word, help=cut(one_line(meaning), most)) for word, meaning in found]


def _threads(ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    verb = ctx.info_name or ""
    statuses, store = _STATUSES.get(verb, frozenset()), ctx.obj.open_store()
    found = offers.offer_threads(store, incomplete, statuses=statuses, archived=verb in _LOOKING)
    return _items(found)


def _workflows(ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    # Those that uwf brings have no history, and cannot be removed.
    shipped = "workflow" in [each.name for each in ctx.command.params]
    how = {"cwd": ctx.obj.cwd, "with_shipped": shipped}
    found = _items(offers.offer_workflows(ctx.obj.open_store(create=True), incomplete, **how))
    # A workflow may be a file too.
    return found or [CompletionItem(incomplete, type="file")]


def _roles(ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    chosen: dict[str, Any] = {name: ctx.params.get(name) for name in ("thread", "workflow")}
    if any(each.name == "thread" for each in ctx.command.params):
        # An option whose value is still to be typed keeps click from reading the arguments.
        chosen["thread"] = chosen["thread"] or next(iter(ctx.args), None)
    store = ctx.obj.open_store()
    return _items(offers.offer_roles(store, incomplete, cwd=ctx.obj.cwd, **chosen))


def _remotes(ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    return _items(offers.offer_remotes(ctx.obj.open_store(), incomplete))


def _names(ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
    group = ctx.parent.info_name if ctx.parent is not None else None
    if group == "workflow":
        return [each for each in _workflows(ctx, incomplete) if each.type == "plain"]
    return _remotes(ctx, incomplete) if (group, ctx.info_name) == ("remote", "remove") else []


_BY_NAME: "dict[str, Callable[[click.Context, str], list[CompletionItem]]]" = {
    **dict.fromkeys(("thread", "threads", "a", "b", "other"), _threads),
    "workflow": _workflows,
    "role": _roles,
    "remote": _remotes,
    "name": _names,
}


class Verb(click.Command):
    """A command whose help page ends in examples, exit statuses and the shared options."""

    examples: tuple[str, ...] = ()
    exits: Mapping[int, str] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options."""
        own = [param for param in self.get_params(ctx) if not is_shared(param)]
        write_options(formatter, ctx, own)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, the exit statuses and the shared options."""
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)
        write_brief_ending(formatter, ctx, self.exits)


def verb(*examples: str, exits: Mapping[int, str] = {}) -> Callable[[Callable[..., None]], Verb]:
    """Make a function ``(session, …)`` a verb; its own arguments come from click's decorators.

        @verb("uwf thread show 01J7K9M2", exits={1: "there is no such thread"})
        @click.argument("thread")
        def command(session: Session, thread: str) -> None:
            \"\"\"Tell where a thread stands.\"\"\"

    *examples* are whole command lines. *exits* says in the verb's own words what a status means;
    those that every command may give need not be repeated. The docstring's first line is what
    the group's table repeats.
    """

    def make(function: Callable[..., None]) -> Verb:
        def run(session: Session, *args: Any, **others: Any) -> None:
            function(session.with_configured_format(), *args, **others)

        # pass_obj passes the session of the verb's own context, which its flags have changed.
        with_session: Callable[..., Any] = click.pass_obj(update_wrapper(run, function))
        made = click.command(cls=Verb)(with_session)
        for parameter in made.params:
            if complete := _BY_NAME.get(parameter.name or ""):
                # click's own way is an argument of each decorator.
                parameter.shell_complete = complete  # type: ignore[method-assign,assignment]  # see above
        made.params += shared_options()
        made.examples = examples
        made.exits = exits
        return made

    return make
