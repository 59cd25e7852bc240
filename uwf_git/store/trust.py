"""Which commands may run: the user's list for each store, in the user's own files.

The list is `$XDG_STATE_HOME/uwf/stores/<SHA-256 of the store's path>/trust`, in git's config format
(FORMAT.md, "Trust"). Nothing in a store adds to it: a store may come from anywhere.

A command is trusted for the files that it means: its program, if that is a path, and every
relative path in it to a file that exists. The same words in another directory mean other files.
The whole AgentConfig is compared, not its node hash: 64 bits can be forged, and an environment can
make a harmless command harmful.
"""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import (
    edit_config,
    normal_name,
    read_config_file,
    remove_values,
    rewrite_config,
)
from uwf_git.store.store import Store
from uwf_git.surroundings import find_above

NAME = "uwf.trusted"
OLD_NAME = "uwf.trustedAgent"
"""In git config: the user's still counts; of a store, only ``trust_agents`` takes it over."""

_OLD_LONGEST = 200
_OLD_LONG = "sha256:"

# A shell line, an option with `=` and a search path hold paths as well.
_FRAGMENT = re.compile(r"[^\s;|&()<>'\"`=$,:{}\[\]]+")


class Trusted(NamedTuple):
    text: str
    """The AgentConfig payload as JSON; of a long one in the user's git config the digest."""

    directory: str | None = None
    """Where it was trusted; None: the user's git config, which names no directory."""

    files: tuple[str, ...] = ()
    """The files that its relative paths meant there; with none it may run in any directory."""

    @property
    def is_own(self) -> bool:
        """The list of this store has it, and not the user's git config."""
        return self.directory is not None

    @property
    def agent(self) -> dict[str, Any] | None:
        """The AgentConfig payload; None for a digest."""
        value = _parse(self.text)
        return value if isinstance(value, dict) else None

    def covers(
        self, agent: dict[str, Any], directory: str | None, meant: tuple[str, ...] | None
    ) -> bool:
        """Check whether this allows *agent*, which means the files *meant* in *directory*."""
        text = agent_text(agent)
        if self.text != text and (self.is_own or self.text != _digest(text)):
            return False
        if self.files == meant:
            return True
        if directory is None or self.directory != os.path.realpath(directory):
            return False
        # There files may come and go, but none comes in the place of one that is still there.
        old, new = set(self.files), set(meant or ())
        return new <= old or not any(map(os.path.lexists, old - new))


def agent_text(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def is_trusted(store: Store, agent: dict[str, Any], directory: str | None) -> bool:
    """Check whether *agent*, an AgentConfig payload, may run in *directory*.

    A command that is no agent is ``{"command": …}`` with what else tells it from others. Without a
    *directory* only what means the same files everywhere is trusted.
    """
    meant = find_meant_files(agent, directory)
    return any(each.covers(agent, directory, meant) for each in list_trusted(store))


def keep_trusted(store: Store, agents: Iterable[dict[str, Any]], directory: str) -> None:
    """Let those of *agents* that may run in *directory* do so when files of their names appear."""
    trust_agents(store, [each for each in agents if is_trusted(store, each, directory)], directory)


def trust_agents(store: Store, agents: Iterable[dict[str, Any]], directory: str | None) -> None:
    """Allow agents with these AgentConfig payloads to run in *directory*.

    A payload that means no files of *directory* may run anywhere. Without a *directory*, an agent
    whose program is a relative path is left out, as its file is not known.
    """
    known = list_trusted(store)
    added: list[str] = []
    stale: set[str] = set()
    for agent in agents:
        # No directory: it means the same everywhere, so any place will do.
        here = os.path.realpath(directory or os.sep)
        files = find_meant_files(agent, directory)
        covering = [each.directory for each in known if each.covers(agent, directory, files)]
        # Only its own entry still covers it here when a word of it has become a file.
        is_covered = here in covering if directory and _has_names(agent) else bool(covering)
        if files is None or is_covered:
            continue
        new = Trusted(agent_text(agent), here, files)
        # Of a directory that has gone, an entry without files allows no more than this.
        stale |= {
            _write(each)
            for each in known
            if each.text == new.text
            and not (files or each.files or os.path.isdir(each.directory or os.sep))
        }
        known.append(new)
        added.append(_write(new))
    if added:
        path = _list_path(store)
        rewrite_config(path, lambda text: _with_values(remove_values(text, NAME, stale), added))


def list_trusted(store: Store) -> list[Trusted]:
    """List what is trusted: by the list of this store, then by the user's git config."""
    path = store.trust_file
    own = [] if path is None else [*map(_read, read_config_file(path).get_all(NAME))]
    elsewhere = dict.fromkeys(store.user_config.get_all(OLD_NAME))
    return [*(each for each in own if each is not None), *map(Trusted, elsewhere)]


def list_formerly_trusted(store: Store) -> list[dict[str, Any]]:
    """List the payloads (not digests) that the store's git config names, which do not count."""
    texts = read_config_file(os.path.join(store.path, "config")).get_all(OLD_NAME)
    found = [Trusted(text).agent for text in dict.fromkeys(texts)]
    return [each for each in found if each is not None and isinstance(each.get("command"), str)]


def untrust_agents(
    store: Store, *, agents: Iterable[dict[str, Any]] = (), command: str | None = None
) -> list[Trusted]:
    """Remove and return the trust in these payloads, and in all with this *command*.

    *command* may also be the ``sha256:…`` of a long payload.
    """
    texts = {agent_text(agent) for agent in agents}
    if command is not None:
        texts |= {command, agent_text({"command": command})}
    gone = [
        each
        for each in list_trusted(store)
        if each.text in texts
        or (command is not None and each.agent is not None and each.agent.get("command") == command)
    ]
    own = {_write(each) for each in gone if each.is_own}
    if own:
        rewrite_config(_list_path(store), lambda text: remove_values(text, NAME, own))
    left = sorted({each.text for each in gone if not each.is_own})
    if left:
        raise Refused(
            f"trusted by your own git config: {left[0]}",
            code="still-trusted",
            hint=f"find it with `git config --global --get-all {OLD_NAME}`, and change it there",
            agents=left,
        )
    return gone


def describe_command(setting: str, command: str) -> dict[str, Any]:
    """Return what is trusted when the setting *setting* names *command*.

    The agent of `uwf.agent` is trusted as any agent. Otherwise the name of the setting is part of
    the document: trust in an agent is no trust in a listener.
    """
    name = normal_name(setting)
    extra = {} if name == "uwf.agent" else {"setting": name}
    return {"command": command, **extra}


def is_set_by_store(store: Store, name: str) -> bool:
    """Check whether the setting *name* is the store's own, so that its command needs trust."""
    value = store.config.get(name)
    return value is not None and value not in store.user_config.get_all(name)


def require_trusted(store: Store, name: str, directory: str | None) -> None:
    """Check that the setting *name*, which decides what runs in *directory*, is the user's own."""
    # Of some settings each value runs, or any.
    for value in store.config.get_all(name):
        is_own = value not in store.user_config.get_all(name)
        if is_own and not is_trusted(store, describe_command(name, value), directory):
            raise Refused(
                # The whole value: a cut text could hide its harmful part.
                f"this store's config sets {name} to a value that is not trusted here: {value}",
                hint=f"read it; if it may count: `uwf agent trust --setting {shlex.quote(name)}`; "
                f"else remove it, in the store: `git config --unset-all {shlex.quote(name)}`",
                setting=name,
                value=value,
                code="setting-not-trusted",
            )


def find_meant_files(agent: dict[str, Any], directory: str | None) -> tuple[str, ...] | None:
    """Return the absolute paths that the relative paths in *agent* mean in *directory*, sorted.

    These are its program, if that is a relative path, and every word that names an existing file,
    also within a shell line, an option or a value of its environment. What a program makes of other
    words is not known: `make test` is trusted by its name. None for a relative program without a
    *directory*.
    """
    words = _split(agent.get("command"))
    program = words[0] if words else ""
    is_path = os.sep in program and not os.path.isabs(program) and "\0" not in program
    if directory is None:
        return None if is_path else ()
    # Those of the project that are not in the directory itself.
    found = find_above(words, workdir=directory)
    meant = {new for new, word in zip(found, words, strict=True) if new != word}
    if is_path and found[0] == program:
        meant.add(program)
    meant.update(part for part in _parts(words, agent) if _is_file(directory, part))
    return tuple(sorted(_absolute(directory, each) for each in meant))


def _split(command: object) -> list[str]:
    text = command if isinstance(command, str) else ""
    with suppress(ValueError):
        return shlex.split(text)
    return [text]


def _parts(words: list[str], agent: dict[str, Any]) -> Iterator[str]:
    env = agent.get("env")
    values = env.values() if isinstance(env, dict) else ()
    for text in {*words, *(value for value in values if isinstance(value, str))}:
        yield text
        yield from _FRAGMENT.findall(text)


def _has_names(agent: dict[str, Any]) -> bool:
    """Check whether a word of *agent*, but for its program and options, may name a file."""
    parts = _parts(_split(agent.get("command"))[1:], agent)
    return any(not part.startswith(("-", os.sep)) for part in parts)


def _is_file(directory: str, part: str) -> bool:
    path = os.path.join(directory, part)
    return not os.path.isabs(part) and os.path.lexists(path) and not os.path.isdir(path)


def _absolute(directory: str, path: str) -> str:
    # The last part stays as it is: a link is trusted by its own name, wherever it leads.
    folder, name = os.path.split(os.path.join(directory, path))
    return os.path.join(os.path.realpath(folder), name)


def _list_path(store: Store) -> str:
    if store.trust_file is None:
        raise Refused(
            "there is no home directory to record trusted commands in",
            code="no-place-for-trust",
            hint="set HOME, or XDG_STATE_HOME to a directory of yours",
        )
    return store.trust_file


def _with_values(text: str, values: list[str]) -> str:
    for value in values:
        # Another process may have added the same; one is enough.
        text = edit_config(remove_values(text, NAME, {value}), NAME, value, keep=True)
    return text


def _write(trusted: Trusted) -> str:
    return agent_text(
        {"agent": trusted.agent, "directory": trusted.directory, "files": list(trusted.files)}
    )


def _read(value: str) -> Trusted | None:
    """Read an entry of the list; None for an invalid entry."""
    match _parse(value):
        case {"agent": dict(agent), "directory": str(directory), "files": list(files)}:
            return Trusted(agent_text(agent), directory, tuple(map(str, files)))
    return None


def _parse(text: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def _digest(text: str) -> str | None:
    """Return how an older uwf wrote a long payload; None for a short one."""
    if len(text) <= _OLD_LONGEST:
        return None
    return _OLD_LONG + hashlib.sha256(text.encode()).hexdigest()
