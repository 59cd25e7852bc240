"""Verbs: each takes the shared options, gets the session first, and ends its help alike."""

from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

import click

from uwf_git.cli.app.complete_names import complete_names
from uwf_git.cli.app.help_page import write_brief_ending, write_examples, write_options
from uwf_git.cli.app.options import is_shared, shared_options
from uwf_git.cli.session.settings import Session

NO_EXITS: Mapping[int, str] = {}


class Verb(click.Command):
    """A command whose help page ends in examples, exit statuses and the shared options."""

    examples: tuple[str, ...] = ()
    exits: Mapping[int, str] = NO_EXITS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options."""
        own = [param for param in self.get_params(ctx) if not is_shared(param)]
        write_options(formatter, ctx, own)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, the exit statuses and the shared options."""
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)
        write_brief_ending(formatter, ctx, shared_options(), self.exits)


def verb(
    *examples: str, exits: Mapping[int, str] = NO_EXITS
) -> Callable[[Callable[..., None]], Verb]:
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
        complete_names(made.params)
        made.params += shared_options()
        made.examples = examples
        made.exits = exits
        return made

    return make
