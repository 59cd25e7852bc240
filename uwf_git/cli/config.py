"""The store itself: `uwf init`, `uwf config ...`, `uwf gc`; and `uwf completion`."""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import ShellComplete, get_completion_class

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note, wide_option
from uwf_git.cli.session import Session, write_stdout
from uwf_git.commands.admin import (
    gc_if_due,
    gc_store,
    gc_unwatched,
    get_store_setting,
    init_shared,
    init_store,
    list_settings,
    set_setting,
)
from uwf_git.errors import BadUsage
from uwf_git.store.packing import Counted

# `uwf init`.


@verb("uwf init", "uwf init .", "uwf init --shared /srv/threads.git")
@click.option(
    "--shared",
    is_flag=True,
    help="Let a group push to it, and install the hooks that check every push.",
)
@click.argument("path", required=False)
def init_command(session: Session, path: str | None, shared: bool) -> None:  # noqa: FBT001 (click calls it so)
    """Create a store.

    PATH becomes a bare repository, unless it is a repository already: a project's own will do,
    since no branch, index or work tree is ever touched. In a folder of it, `uwf init .` finds it.
    Commands in the folders below it find the store by themselves. Without PATH: --repo, $UWF_REPO,
    or ~/.uwf/store.git.

    With --shared it is a bare repository for several people: its files belong to their group, and a
    pre-receive hook refuses pushes that would damage threads. Repeat it after uwf has moved.
    """
    if path == "":
        raise BadUsage("the path is empty", code="no-path", hint="give a path, or leave it out")
    place = path or session.repo
    if shared:
        hub = init_shared(place, session.cwd, session.environ, python=sys.executable or "")
        emit(session, {"repo": hub.store.path, "created": hub.created, "hooks": hub.hooks})
    else:
        made = init_store(place, session.cwd, session.environ)
        if made.is_adopted:
            note(
                f"note: the repository {made.store.path} is a store now: threads live beside its "
                "branches, in refs of their own; no branch, index or work tree is touched"
            )
        emit(session, {"repo": made.store.path, "created": made.created})


# `uwf config ...`.


@verb("uwf config get agent", exits={1: "it is not set"})
@click.argument("name")
def get_command(session: Session, name: str) -> None:
    """Print a setting.

    NAME may leave out the `uwf.` in front.
    """
    setting = get_store_setting(session.open_store(create=True), name)
    emit(session, {"name": setting.name, "value": setting.value})


@verb("uwf config list --format text")
@click.option("--all", "with_seldom", is_flag=True, help="Those that are hardly ever set as well.")
@wide_option
def list_command(session: Session, *, with_seldom: bool, wide: bool) -> None:
    """List the settings.

    Each has its effective value here and its meaning. `git config --unset uwf.NAME` in the store
    removes one.
    """
    settings = list_settings(session.open_store(create=True), with_seldom=with_seldom)
    emit(session, [setting._asdict() for setting in settings], wide=wide)


@verb("uwf config set agent uwf-claude", "git config --global uwf.agent uwf-claude")
@click.argument("name")
@click.argument("value")
def set_command(session: Session, name: str, value: str) -> None:
    """Change a setting.

    In this store's git config; `git config --global uwf.NAME VALUE` sets it for all stores.
    """
    store = session.open_store(create=True)
    setting = set_setting(store, name, text_argument(value, "the value"), cwd=session.cwd)
    emit(session, {"name": setting.name, "value": setting.value})


# `uwf gc`.

_UNITS = ("bytes", "KiB", "MiB", "GiB")
_UNIT = 1024


@verb(
    "uwf gc",
    "uwf gc --format text",
    exits={4: "another gc runs on the store"},
)
@click.option("--auto", is_flag=True, help="Only if it is needed, and only what is needed.")
@click.option("--detached", is_flag=True, hidden=True)
def gc_command(session: Session, *, auto: bool, detached: bool) -> None:
    """Pack the store.

    Objects go into one file, refs into another, and files left by killed processes are removed.
    Nothing that a ref needs is lost, and steps may run meanwhile. git does the packing.

    A store packs itself in the background when steps have written many objects. git's own settings
    say when: gc.auto (0 is never), gc.autoPackLimit, gc.pruneExpire, gc.autoDetach. Large packs
    are left alone then (gc.bigPackThreshold, 8m unless set).

    What no ref needs any more, as after `uwf thread rm`, is kept for two weeks, or what
    gc.pruneExpire says, but at least a day; `git gc --prune=now` in the store removes it at once.
    """
    store = session.open_store()
    if detached:
        with contextlib.suppress(OSError):
            os.nice(10)
        gc_unwatched(store, session.environ)
        return
    if auto:
        emit(session, {"packed": gc_if_due(store, session.environ)})
        return
    packed = gc_store(store, session.environ)
    if packed.last_failure is not None:
        note(f"the last packing in the background failed: {packed.last_failure}")
    document = {
        "packer": "git",
        "before": _counted(packed.before),
        "after": _counted(packed.after),
        "swept": packed.swept,
    }
    emit(session, document, text=_text)


def _counted(counted: Counted) -> dict[str, int]:
    return {
        "looseObjects": counted.loose_objects,
        "packs": counted.packs,
        "bytes": counted.size_bytes,
    }


def _text(document: Mapping[str, Any]) -> str:
    before, after, swept = document["before"], document["after"], document["swept"]
    told = f"packed by {document['packer']}\nbefore: {_told(before)}\nafter:  {_told(after)}"
    return told + (f"\nswept:  {_many(swept, 'leftover')} of killed processes" if swept else "")


def _told(counted: Mapping[str, int]) -> str:
    loose, packs = _many(counted["looseObjects"], "loose object"), _many(counted["packs"], "pack")
    return f"{loose}, {packs}, {_size(counted['bytes'])}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _UNIT:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= _UNIT
    return f"{size:,.1f} {_UNITS[-1]}"


# `uwf completion`: the scripts by which a shell completes our words; click makes them.

PROGRAMS = ("uwf", "json-cas")
SHELLS = ("bash", "zsh", "fish")


@verb(
    'eval "$(uwf completion bash)"  # in ~/.bashrc',
    'eval "$(uwf completion zsh)"   # in ~/.zshrc, below compinit',
    "uwf completion fish | source   # in ~/.config/fish/config.fish",
)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
def completion_command(session: Session, shell: str) -> None:
    """Print the script that completes words in a shell.

    It completes the words of uwf and of json-cas, and threads (by id, or by a word of their status,
    workflow or task), workflows, roles and remotes. To enable it for good, add the line of your
    shell, as below, to the file that the shell reads when it starts. bash has to be 4.4 or newer.
    """
    del session  # a script is not a document: every format is the same
    write_stdout("".join(_script(program, shell) for program in PROGRAMS))


def _script(program: str, shell: str) -> str:
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    made: Any = get_completion_class(shell)
    # ShellComplete's own source(): bash's first runs bash to ask for its version.
    completion = made(click.Group(program), {}, program, variable)
    script = ShellComplete.source(completion).strip() + "\n"
    # Where uwf has no word bash offers files, as elsewhere.
    script = script.replace("-o nosort", "-o nosort -o bashdefault -o default")
    # click's script for fish cuts a meaning at its first comma.
    return script.replace('string split ","', 'string split -m 1 ","')
