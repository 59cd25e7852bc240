"""`uwf hook`: called by the hooks of a shared store, never typed.

pre-receive accepts a push only if every check succeeded; any error refuses it.
"""

import os

import click

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session import Session, write_stderr
from uwf_git.model.text import one_line
from uwf_git.store.git.config import shared_umask
from uwf_git.store.git.hook_files import MOST_INPUT_BYTES, Refusal, ours_among, parse_updates

_MOST_TOLD = 50


@verb(
    "uwf hook pre-receive",
    exits={1: "the push is refused", 2: "standard input is not what git tells a hook"},
)
@click.argument("name", type=click.Choice(["pre-receive", "post-receive"]))
def command(session: Session, name: str) -> None:
    """Run a git hook.

    Standard input has lines `OLD NEW REF`, as git gives them to the hooks of the same names.
    pre-receive refuses what would damage threads, workflows or nodes; post-receive sends every
    transition as a line of JSON to the command in git config uwf.onReceive.
    """
    updates = parse_updates(Input("-").read_bytes(limit_bytes=MOST_INPUT_BYTES))
    if not ours_among(updates):
        return
    git_dir = os.path.join(session.cwd, session.environ.get("GIT_DIR") or ".")
    from uwf_git.commands.receive import announce_push, check_push  # noqa: PLC0415 (a push of branches needs no checks)

    if name == "post-receive":
        from uwf_git.store.store import open_store  # noqa: PLC0415 (as above: dulwich)

        store = open_store(git_dir, environ=session.environ)
        with shared_umask(store.config):
            for warning in announce_push(store, updates, session.environ):
                write_stderr(f"warning: {one_line(warning)}\n")
        return
    refusals = check_push(git_dir, session.environ, updates)
    if refusals:
        _tell(refusals)
        click.get_current_context().exit(1)


def _tell(refusals: list[Refusal]) -> None:
    lines = [f"error: {each.name}: {each.message}" for each in refusals[:_MOST_TOLD]]
    if len(refusals) > _MOST_TOLD:
        lines.append(f"error: and {len(refusals) - _MOST_TOLD} more")
    hints = list(dict.fromkeys(each.hint for each in refusals))
    lines += [f"hint: {hint}" for hint in hints[:5]]
    write_stderr("".join(one_line(line) + "\n" for line in lines))
