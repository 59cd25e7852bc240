"""Trust: which agent commands this store may run.

Owns: ``uwf.trustedAgent`` in git config, one value an AgentConfig: added to the repository's
own, and read from the user's as well, which no fetch reaches either.
Knows nothing of: how commands run.
Always true: a fetched thread or workflow never adds to it. The whole AgentConfig counts (a long
one by its SHA-256), not its node hash: 64 bits can be forged, and an environment can make a
harmless command harmful.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git_config import add_config, read_config_file, remove_config
from uwf_git.store.store import Store

NAME = "uwf.trustedAgent"

_LONGEST_WRITTEN = 200
_LONG = "sha256:"


class StillTrusted(Refused):
    """Agents are trusted by a file that is not the store's own."""

    code = "still-trusted"

    def __init__(self, texts: list[str]) -> None:
        super().__init__(
            f"trusted by another file than the store's config: {texts[0]}",
            hint=f"find it with `git config --show-origin --get-all {NAME}`, and change it there",
            agents=texts,
        )


class Trusted(NamedTuple):
    """One allowance."""

    text: str
    """As it stands in the config."""

    is_own: bool
    """Whether the store's own config has it; otherwise the user's, or one that is included."""

    @property
    def agent(self) -> dict[str, Any] | None:
        """The AgentConfig payload; None for a long one, of which only the digest is kept."""
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


def is_trusted(store: Store, agent: dict[str, Any]) -> bool:
    """Tell whether this AgentConfig payload was allowed here."""
    return _text(agent) in store.config.get_all(NAME)


def trust_agents(store: Store, agents: Iterable[dict[str, Any]]) -> None:
    """Allow these AgentConfig payloads from now on; those that are allowed already cost nothing.

    Raises:
        RefLocked: git is writing the config and does not let go.
    """
    known = store.config.values.setdefault(NAME.lower(), [])
    for agent in agents:
        text = _text(agent)
        if text not in known:
            if store.is_kept:
                add_config(os.path.join(store.path, "config"), NAME, text)
            known.append(text)


def list_trusted(store: Store) -> list[Trusted]:
    """Give all that is allowed here, in the config's order, each once."""
    own = _own_texts(store)
    texts = dict.fromkeys(store.config.get_all(NAME))
    return [Trusted(text, text in own) for text in texts]


def untrust_agents(
    store: Store, *, agents: Iterable[dict[str, Any]] = (), command: str | None = None
) -> list[Trusted]:
    """Allow these payloads no more, nor any that has this *command*; give what was taken away.

    A long one, of which only the digest is known, is also named by ``sha256:…``.

    Raises:
        StillTrusted: the store's config is not the one that allows them.
        RefLocked: git is writing the config and does not let go.
    """
    texts = {_text(agent) for agent in agents}
    if command is not None:
        texts |= {command, _text({"command": command})}
    gone = [
        each
        for each in list_trusted(store)
        if each.text in texts
        or (command is not None and each.agent is not None and each.agent.get("command") == command)
    ]
    doomed = {each.text for each in gone}
    if gone and store.is_kept:
        elsewhere = Counter(store.config.get_all(NAME)) - Counter(_own_texts(store))
        remove_config(os.path.join(store.path, "config"), NAME, doomed)
        left = doomed & {*_own_texts(store), *elsewhere}
        if left:
            raise StillTrusted(sorted(left))
    known = store.config.values.get(NAME.lower(), [])
    known[:] = [text for text in known if text not in doomed]
    return gone


def _own_texts(store: Store) -> list[str]:
    if not store.is_kept:
        return store.config.get_all(NAME)
    return read_config_file(os.path.join(store.path, "config")).get_all(NAME)


def _text(agent: dict[str, Any]) -> str:
    text = json.dumps(agent, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    if len(text) <= _LONGEST_WRITTEN:
        return text
    # A whole script would swell a config that git reads at every command.
    return _LONG + hashlib.sha256(text.encode()).hexdigest()
