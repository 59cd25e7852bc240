"""Which agent commands may run in this store: ``uwf.trustedAgent`` in git config.

Values are added to the repository's config; the user's config counts too. No fetch writes either.
The whole AgentConfig is compared (a long one by its SHA-256), not its node hash: 64 bits can be
forged, and an environment can make a harmless command harmful.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import add_config, read_config_file, remove_config
from uwf_git.store.store import Store

NAME = "uwf.trustedAgent"

_LONGEST_WRITTEN = 200
_LONG = "sha256:"


class StillTrusted(Refused):
    """The agents are trusted by a config file other than the store's."""

    code = "still-trusted"

    def __init__(self, texts: list[str]) -> None:
        super().__init__(
            f"trusted by another file than the store's config: {texts[0]}",
            hint=f"find it with `git config --show-origin --get-all {NAME}`, and change it there",
            agents=texts,
        )


class Trusted(NamedTuple):
    """An agent that may run."""

    text: str
    """Its value in git config."""

    is_own: bool
    """The store's own config has it, and not only the user's or an included file."""

    @property
    def agent(self) -> dict[str, Any] | None:
        """The AgentConfig payload; None for a long one, of which only the digest is stored."""
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


def is_trusted(store: Store, agent: dict[str, Any]) -> bool:
    """Check whether an agent with this AgentConfig payload may run."""
    return _text(agent) in store.config.get_all(NAME)


def trust_agents(store: Store, agents: Iterable[dict[str, Any]]) -> None:
    """Allow agents with these AgentConfig payloads to run.

    Raises:
        RefLocked: git keeps its lock on the config.
    """
    known = store.config.values.setdefault(NAME.lower(), [])
    for agent in agents:
        text = _text(agent)
        if text not in known:
            add_config(os.path.join(store.path, "config"), NAME, text)
            known.append(text)


def list_trusted(store: Store) -> list[Trusted]:
    """List the trusted agents, in the order of the config, without duplicates."""
    own = _own_texts(store)
    texts = dict.fromkeys(store.config.get_all(NAME))
    return [Trusted(text, text in own) for text in texts]


def untrust_agents(
    store: Store, *, agents: Iterable[dict[str, Any]] = (), command: str | None = None
) -> list[Trusted]:
    """Remove the trust in these payloads and in all with this *command*; return what was removed.

    *command* may also be the ``sha256:…`` of a long payload.

    Raises:
        StillTrusted: another config file than the store's trusts one of them.
        RefLocked: git keeps its lock on the config.
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
    if gone:
        elsewhere = Counter(store.config.get_all(NAME)) - Counter(_own_texts(store))
        remove_config(os.path.join(store.path, "config"), NAME, doomed)
        left = doomed & {*_own_texts(store), *elsewhere}
        if left:
            raise StillTrusted(sorted(left))
    known = store.config.values.get(NAME.lower(), [])
    known[:] = [text for text in known if text not in doomed]
    return gone


def _own_texts(store: Store) -> list[str]:
    return read_config_file(os.path.join(store.path, "config")).get_all(NAME)


def _text(agent: dict[str, Any]) -> str:
    text = json.dumps(agent, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    if len(text) <= _LONGEST_WRITTEN:
        return text
    # git reads the config at every command: a whole script would not fit there.
    return _LONG + hashlib.sha256(text.encode()).hexdigest()
