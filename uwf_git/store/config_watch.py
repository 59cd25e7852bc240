"""Notice that settings of a store changed after an agent was started, but not by uwf.

An agent that may write files may write the store's config. What that could run needs trust
(trust.py); this says that it happened. What was known is in the user's own file `known-config`
(user_files.py), a JSON object of the settings, each with the SHA-256 of its values.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.store.disk.durable import read_if_there, replace_file
from uwf_git.store.git.config import read_config_file
from uwf_git.store.store import Store

# What runs, and where things are sent. People set the others too often to be asked each time.
_WATCHED = (
    r"uwf\.(agent|onevent|onreceive|trustedagent|store)"
    r"|uwf\..+\.(args|command|env|key-?env|permission|program|provider|shell|url)"
    r"|core\.(alternaterefscommand|askpass|attributesfile|editor|fsmonitor|gitproxy|hookspath|pager"
    r"|sshcommand|worktree)"
    r"|gpg\.(.+\.)?(program|defaultkeycommand)|gc\.recentobjectshook"
    r"|(alias|credential|diff|extensions|filter|http|include|includeif|merge|protocol|receive|remote"
    r"|transfer|uploadpack|url)\..+"
)


def watch_config(store: Store) -> None:
    """Record the settings of *store* as known, unless some are already; call it before an agent."""
    path = _known_path(store)
    if path is not None and not os.path.exists(path):
        _write(path, _read_settings(store))


def list_changed_settings(store: Store) -> list[str]:
    """List the watched settings of *store* that are other than known; none if no agent ran."""
    known = _read_known(store)
    return [] if known is None else _differ(known, _read_settings(store))


def accept_config(store: Store) -> list[str]:
    """Record the settings of *store* as known; return those that were other."""
    changed = list_changed_settings(store)
    path = _known_path(store)
    if changed and path is not None:
        _write(path, _read_settings(store))
    return changed


@contextmanager
def own_change(store: Store) -> Iterator[None]:
    """Record the settings that this process changes meanwhile as known."""
    before = _read_settings(store)
    yield
    known, path = _read_known(store), _known_path(store)
    if known is None or path is None:
        return
    after = _read_settings(store)
    for name in _differ(before, after):
        known.pop(name, None)
        known |= {name: after[name]} if name in after else {}
    _write(path, known)


def _known_path(store: Store) -> str | None:
    if store.trust_file is None:
        return None
    return os.path.join(os.path.dirname(store.trust_file), "known-config")


def _read_known(store: Store) -> dict[str, str] | None:
    path = _known_path(store)
    content = b"" if path is None else read_if_there(path)
    with suppress(ValueError):
        value = json.loads(content or b"null")
        if isinstance(value, dict):
            return value
    return None


def _read_settings(store: Store) -> dict[str, str]:
    config = read_config_file(os.path.join(store.path, "config"))
    return {
        name: hashlib.sha256(json.dumps(values).encode()).hexdigest()
        for name, values in config.values.items()
        if re.fullmatch(_WATCHED, name)
    }


def _differ(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _write(path: str, settings: dict[str, str]) -> None:
    # A warning is not worth a failed step.
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, json.dumps(settings, sort_keys=True).encode(), durable=False)
