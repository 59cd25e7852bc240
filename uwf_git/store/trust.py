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
from collections.abc import Iterable
from typing import Any

from uwf_git.store.git_config import add_config
from uwf_git.store.store import Store

NAME = "uwf.trustedAgent"

_LONGEST_WRITTEN = 200


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


def _text(agent: dict[str, Any]) -> str:
    text = json.dumps(agent, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    if len(text) <= _LONGEST_WRITTEN:
        return text
    # A whole script would swell a config that git reads at every command.
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
