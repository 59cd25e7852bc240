"""The settings of an adapter, from five sources; the more specific one wins.

1. the adapter's command line: ``uwf-claude --model opus``
2. the environment: ``UWF_CLAUDE_MODEL``
3. git config for the role: ``uwf.claude.reviewer.model``
4. git config: ``uwf.claude.model``
5. for the model alone, the environment for all adapters: ``UWF_MODEL``

The store's git config is read over the user's. What it sets of these runs no program, gives no
permission and sends no key elsewhere, unless the user trusts it: a store may come from anywhere.
A fetched thread or workflow cannot set anything.
"""

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.text import parse_float

if TYPE_CHECKING:
    from uwf_git.store.git.config import GitConfig


KEYS: dict[str, str] = {
    "model": "the model to use, as the program names it",
    "permission": "what the program may do without asking, as it names it",
    "args": "more arguments for the program, split as a shell would",
    "program": "the path of the program, if its name is not on the PATH",
    "env": "more variables that it may see, such as `JAVA_HOME NODE_*`",
    "timeout": "the most seconds for one answer",
    "silence": "the most seconds in which it may print nothing",
    "resume": "visits: resume the conversation of the role's last turn; a retry does not",
}

# Longer waits are more than sockets and clocks can count.
_A_YEAR_S = 365 * 24 * 3600.0

_HARMLESS = {
    "maxtokens", "mcp", "model", "resume", "schema", "silence", "temperature", "timeout", "tokens",
    "turns",
}  # fmt: skip
"""What a store may set untrusted, as ``plain_key`` returns it."""


def load_settings(
    adapter: str, role: str, *, environ: Mapping[str, str], words: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of *adapter* for *role* by their plain keys; *words* are typed ones."""
    # Part of the store, which is imported only when a context is loaded.
    from uwf_git.store.git.config import (  # noqa: PLC0415 (as above)
        add_user_config,
        read_config_file,
        read_user_config,
    )

    git_dir = environ.get("UWF_REPO")
    user = config = read_user_config(environ)
    if git_dir:
        own = read_config_file(os.path.join(git_dir, "config"))
        config = add_user_config(git_dir, own, environ, user=user)
    found = _find_configured(adapter, role, config)
    if environ.get("UWF_MODEL"):
        found.setdefault("model", _Found(environ["UWF_MODEL"]))
    front = f"UWF_{adapter}_".upper().replace("-", "_")
    given = {
        name.removeprefix(front): value
        for name, value in environ.items()
        if name.startswith(front) and value
    }
    for key, value in [*given.items(), *words.items()]:
        found[plain_key(key)] = _Found(value)
    doubtful = [
        each.name
        for key, each in found.items()
        if key not in _HARMLESS and each.name and each.value not in user.get_all(each.name)
    ]
    if git_dir and doubtful:
        _require_trusted(git_dir, doubtful, environ)
    return {key: each.value for key, each in found.items()}


class _Found(NamedTuple):
    value: str
    name: str | None = None
    """Its full name in git config; None: it comes from elsewhere."""


def _find_configured(adapter: str, role: str, config: "GitConfig") -> dict[str, _Found]:
    """Return the settings in git config by their plain keys; those of the role come first."""
    found: dict[str, _Found] = {}
    for section in (f"uwf.{adapter}", f"uwf.{adapter}.{role}"):
        for name, values in config.values.items():
            # The last dot ends the section; a role's name may contain dots.
            front, _, key = name.rpartition(".")
            if front == section:
                found[plain_key(key)] = _Found(values[-1], name)
    return found


def _require_trusted(git_dir: str, names: list[str], environ: Mapping[str, str]) -> None:
    """Check that the settings *names* are the user's, or trusted for the current directory."""
    from uwf_git.store.store import open_store  # noqa: PLC0415 (see above)
    from uwf_git.store.trust import require_trusted  # noqa: PLC0415 (see above)

    store = open_store(git_dir, environ=environ)
    for name in names:
        require_trusted(store, name, os.getcwd())


def plain_key(key: str) -> str:
    """Return *key* as it is compared: `max-tokens`, `maxTokens` and `MAX_TOKENS` are the same."""
    return key.replace("-", "").replace("_", "").lower()


def parse_words(own: Sequence[str], *, keys: Sequence[str], word: str | None) -> dict[str, str]:
    """Parse ``--key value`` or ``--key=value``, for *keys*, and a positional *word*."""
    words = list(own)
    found: dict[str, str] = {}
    while words:
        first = words.pop(0)
        if not first.startswith("--"):
            if word is None or word in found:
                raise BadUsage(f"unexpected word {first:.200}", hint=_hint(keys))
            found[word] = first
            continue
        key, is_joined, value = first[2:].partition("=")
        if key not in keys:
            raise BadUsage(f"no setting is called {first:.200}", hint=_hint(keys))
        if not is_joined and not words:
            raise BadUsage(f"--{key} needs a value", hint=f"for example: --{key} VALUE")
        found[key] = value if is_joined else words.pop(0)
    return found


def parse_seconds(settings: Mapping[str, str], key: str) -> float | None:
    """Return the setting *key* as seconds, a year at most; None if it is not set."""
    text = settings.get(key)
    if not text:
        return None
    seconds = parse_float(text)
    if not seconds:
        raise BadUsage(f"{key} is {text!r:.100}, not a number of seconds", hint=f"{key}=600")
    return min(seconds, _A_YEAR_S)


def choose_permission(settings: Mapping[str, str], known: Collection[str]) -> str:
    """Return the setting ``permission``, one of *known*; the first of them is the default."""
    first, *others = known
    permission = settings.get("permission") or first
    if permission not in known:
        hint = f"permission={first}, or {', '.join(others)}"
        raise BadUsage(f"permission is {permission!r:.100}", hint=hint)
    return permission


def split_args(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the setting ``args`` as words."""
    try:
        return tuple(shlex.split(settings.get("args", "")))
    except ValueError as error:
        problem = f"args cannot be split into words: {str(error).lower()}"
        raise BadUsage(problem, hint="write them as you would in a shell") from error


def _hint(keys: Sequence[str]) -> str:
    return f"settings are {', '.join('--' + key for key in keys)}"
