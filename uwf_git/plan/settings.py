"""The settings `uwf.plan.*` in git config, read in one place."""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.model.limits import LONGEST_MS
from uwf_git.model.path_below import check_path_below
from uwf_git.model.text import parse_duration_ms
from uwf_git.plan.phases import MAX_RETRIES
from uwf_git.plan.plan_files import PLAN_DIR
from uwf_git.plan.plugin import PLUGIN_DIR
from uwf_git.plan.session_log import MEMORY_DIR
from uwf_git.plan.state_file import STATE_FILE
from uwf_git.plan.stop_grace import GRACE_S
from uwf_git.plan.stop_server import ADDRESS, PORT
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted

STATUS_FILE = ".state/status.json"

_MS = 1000
_LAST_PORT = 65535
_MOST_RETRIES = 1000


class PlanSettings(NamedTuple):
    """The settings of `uwf plan`; the defaults count where nothing is set."""

    plan_dir: str = PLAN_DIR
    memory_dir: str = MEMORY_DIR
    state_file: str = STATE_FILE
    status_file: str = STATUS_FILE
    plugin_dir: str = PLUGIN_DIR
    address: str = ADDRESS
    port: int = PORT
    max_retries: int = MAX_RETRIES
    planning_ms: int | None = None
    executing_ms: int | None = None
    verifying_ms: int | None = None
    """How long an agent may take in each phase; None: no limit."""

    agent: str | None = None
    verifier: str | None = None
    ai: str | None = None
    stop_grace_s: float = GRACE_S
    hooks: bool = True

    @property
    def timeouts_ms(self) -> dict[str, int | None]:
        """The limits by their names in the state of the thread."""
        return {
            "planning": self.planning_ms,
            "executing": self.executing_ms,
            "verifying": self.verifying_ms,
        }


DEFAULTS = PlanSettings()


def read_plan_settings(config: GitConfig) -> PlanSettings:
    """Return the settings in *config*; an empty value is as good as none.

    Raises:
        Refused: one has a wrong value.
    """
    found: dict[str, Any] = {}
    for name, kind in _KINDS.items():
        text = config.get(name)
        if not text:
            continue
        value = kind.form.read(text)
        if value is None:
            raise Refused(
                f"{name} is {text[:60]!r}, not {kind.form.words}",
                code="bad-plan-setting",
                hint=f"set it anew: `uwf config set {name} {kind.form.example}`",
                setting=name,
            )
        found[kind.field] = value
    return PlanSettings(**found)


def load_plan_settings(store: Store, workdir: str) -> PlanSettings:
    """Return the settings that count in *workdir*.

    Raises:
        Refused: one has a wrong value.
        Refused: the store's own config decides what runs, or which files are written.
    """
    for name in TRUSTED:
        require_trusted(store, name, workdir)
    return read_plan_settings(store.config)


class _Form(NamedTuple):
    read: Callable[[str], Any]
    """Returns None for a text of another form."""

    words: str
    example: str


class _Kind(NamedTuple):
    field: str
    form: _Form
    meaning: str


def _read_path(text: str) -> str | None:
    return None if check_path_below(text) else text


def _read_word(text: str) -> str | None:
    return text if text.isprintable() and not any(each.isspace() for each in text) else None


def _read_number(text: str, least: int, most: int) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    return int(text) if is_number and least <= int(text) <= most else None


def _read_duration_ms(text: str) -> int | None:
    duration_ms = parse_duration_ms(text)
    return duration_ms if duration_ms is not None and 0 < duration_ms <= LONGEST_MS else None


def _read_grace_s(text: str) -> float | None:
    grace_ms = parse_duration_ms(text)
    return grace_ms / _MS if grace_ms is not None and grace_ms <= LONGEST_MS else None


def _read_flag(text: str) -> bool | None:
    config = GitConfig({"x": [text]})
    found = config.get_flag("x", default=True)
    return found if found == config.get_flag("x", default=False) else None


_PATH = "a path below the work directory"
_COMMAND = _Form(lambda text: text if text.strip() else None, "a command", "claude")
_DURATION = _Form(_read_duration_ms, "a time such as 30m, up to a year", "30m")


def _path(example: str) -> _Form:
    return _Form(_read_path, _PATH, example)


_KINDS: dict[str, _Kind] = {
    "uwf.plan.planDir": _Kind(
        "plan_dir", _path(PLAN_DIR), f"where plan files lie ({PLAN_DIR} unless set)"
    ),
    "uwf.plan.memoryDir": _Kind(
        "memory_dir", _path(MEMORY_DIR), f"where session logs are kept ({MEMORY_DIR} unless set)"
    ),
    "uwf.plan.stateFile": _Kind(
        "state_file", _path(STATE_FILE), f"the file that tells the phase ({STATE_FILE} unless set)"
    ),
    "uwf.plan.statusFile": _Kind(
        "status_file",
        _path(STATUS_FILE),
        f"the file in which agents leave their reports ({STATUS_FILE} unless set)",
    ),
    "uwf.plan.pluginDir": _Kind(
        "plugin_dir", _path(PLUGIN_DIR), f"where the plugin is written ({PLUGIN_DIR} unless set)"
    ),
    "uwf.plan.address": _Kind(
        "address",
        _Form(_read_word, "an address", ADDRESS),
        f"where stop notices are received ({ADDRESS} unless set)",
    ),
    "uwf.plan.port": _Kind(
        "port",
        _Form(lambda text: _read_number(text, 0, _LAST_PORT), "a port", str(PORT)),
        f"the port of stop notices ({PORT} unless set); if it is taken, a free one is used",
    ),
    "uwf.plan.maxRetries": _Kind(
        "max_retries",
        _Form(lambda text: _read_number(text, 1, _MOST_RETRIES), "a number from 1 on", "3"),
        f"the tries in all, of the planning and of each plan ({MAX_RETRIES} unless set)",
    ),
    "uwf.plan.planningTimeout": _Kind(
        "planning_ms", _DURATION, "how long the planner may take (30m; no limit unless set)"
    ),
    "uwf.plan.executingTimeout": _Kind(
        "executing_ms", _DURATION, "how long a try at a plan may take (30m; no limit unless set)"
    ),
    "uwf.plan.verifyingTimeout": _Kind(
        "verifying_ms", _DURATION, "how long a verifier may take (30m; no limit unless set)"
    ),
    "uwf.plan.agent": _Kind("agent", _COMMAND, "who plans and works, as --agent of `uwf plan run`"),
    "uwf.plan.verifier": _Kind("verifier", _COMMAND, "who verifies (the agent unless set)"),
    "uwf.plan.ai": _Kind("ai", _COMMAND, "in place of the agent: called as CMD -p PROMPT"),
    "uwf.plan.stopGrace": _Kind(
        "stop_grace_s",
        _Form(_read_grace_s, "a time such as 10s", "10s"),
        "how long a program may stay open that has told of its stop and left its report (10s "
        "unless set, 0 is for ever)",
    ),
    "uwf.plan.hooks": _Kind(
        "hooks",
        _Form(_read_flag, "true or false", "true"),
        "whether AI tools get the stop hook in runs of plans (true unless set)",
    ),
}

MEANINGS: dict[str, str] = {name: kind.meaning for name, kind in _KINDS.items()}
"""What each setting is, for people."""

SELDOM = frozenset(
    name
    for name, kind in _KINDS.items()
    if kind.form.words == _PATH or kind.field in {"address", "port"}
)
"""Where files lie, and where stop notices are received."""

COMMANDS = frozenset({"uwf.plan.agent", "uwf.plan.verifier", "uwf.plan.ai"})

TRUSTED = tuple(
    name
    for name, kind in _KINDS.items()
    if name in COMMANDS or kind.form.words == _PATH or kind.field == "address"
)
"""What decides which programs run, which files are written or removed, and who may connect."""
