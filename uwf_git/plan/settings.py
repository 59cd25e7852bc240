"""The settings `uwf.plan.*` in git config, read in one place."""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.model.limits import LONGEST_MS
from uwf_git.model.names import check_path_below
from uwf_git.model.text import parse_duration_ms
from uwf_git.plan.phases import MAX_RETRIES, MEMORY_DIR, STATE_FILE
from uwf_git.plan.project_files import PLAN_DIR
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted


class PlanSettings(NamedTuple):
    """The settings of `uwf plan`; the defaults count where nothing is set."""

    plan_dir: str = PLAN_DIR
    memory_dir: str = MEMORY_DIR
    state_file: str = STATE_FILE
    status_file: str = ".state/status.json"
    plugin_dir: str = ".plugins"
    address: str = "127.0.0.1"
    port: int = 9527
    max_retries: int = MAX_RETRIES
    planning_ms: int | None = None
    executing_ms: int | None = None
    verifying_ms: int | None = None
    """How long an agent may take in each phase; None: no limit."""

    agent: str | None = None
    verifier: str | None = None
    ai: str | None = None
    stop_grace_ms: int = 10_000
    hooks: bool = True

    @property
    def timeouts_ms(self) -> dict[str, int | None]:
        return {
            "planning": self.planning_ms,
            "executing": self.executing_ms,
            "verifying": self.verifying_ms,
        }


DEFAULTS = PlanSettings()


def read_plan_settings(config: GitConfig) -> PlanSettings:
    """Return the settings in *config*; an empty value is as good as none."""
    found: dict[str, Any] = {}
    for name, setting in _SETTINGS.items():
        text = config.get(name)
        if not text:
            continue
        value = setting.form.read(text)
        if value is None:
            raise Refused(
                f"{name} is {text[:60]!r}, not {setting.form.words}",
                code="bad-plan-setting",
                hint=f"set it anew: `uwf config set {name} {setting.example}`",
                setting=name,
            )
        found[setting.field] = value
    return PlanSettings(**found)


def load_plan_settings(store: Store, workdir: str) -> PlanSettings:
    for name in TRUSTED:
        if store.config.get(name):
            require_trusted(store, name, workdir)
    return read_plan_settings(store.config)


class _Form(NamedTuple):
    words: str
    read: Callable[[str], Any]
    """Returns None for a text of another form."""


class _Setting(NamedTuple):
    field: str
    form: _Form
    example: str
    meaning: str


def _number(words: str, least: int, most: int) -> _Form:
    def read(text: str) -> int | None:
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        return int(text) if is_number and least <= int(text) <= most else None

    return _Form(words, read)


def _read_duration_ms(text: str) -> int | None:
    duration_ms = parse_duration_ms(text)
    return duration_ms if duration_ms is not None and duration_ms <= LONGEST_MS else None


def _read_flag(text: str) -> bool | None:
    config = GitConfig({"x": [text]})
    found = config.get_flag("x", default=True)
    return found if found == config.get_flag("x", default=False) else None


_PATH = _Form(
    "a path below the work directory, without * ? [",
    lambda text: None if check_path_below(text) or set(text) & set("*?[") else text,
)
_ADDRESS = _Form(
    "an address", lambda text: text if text.isprintable() and text.split() == [text] else None
)
_COMMAND = _Form("a command", lambda text: text if text.strip() else None)
_TIME = _Form("a time such as 30m, up to a year", lambda text: _read_duration_ms(text) or None)


def _usual(field: str, form: _Form, meaning: str, more: str = "") -> _Setting:
    usual = str(getattr(DEFAULTS, field))
    return _Setting(field, form, usual, f"{meaning} ({usual} unless set){more}")


def _phase(field: str, who: str) -> _Setting:
    return _Setting(field, _TIME, "30m", f"how long {who} may take, as 30m (no limit unless set)")


_SETTINGS: dict[str, _Setting] = {
    f"uwf.plan.{name}": setting
    for name, setting in {
        "planDir": _usual("plan_dir", _PATH, "where plan files lie"),
        "memoryDir": _usual("memory_dir", _PATH, "where session logs are kept"),
        "stateFile": _usual("state_file", _PATH, "the file that tells the phase"),
        "statusFile": _usual("status_file", _PATH, "the file in which agents leave their reports"),
        "pluginDir": _usual("plugin_dir", _PATH, "where the plugin is written"),
        "address": _usual("address", _ADDRESS, "where stop notices are received"),
        "port": _usual(
            "port",
            _number("a port", 0, 65535),
            "the port of stop notices",
            "; if it is taken, a free one is used",
        ),
        "maxRetries": _usual(
            "max_retries",
            _number("a number from 1 on", 1, 1000),
            "the tries in all, of the planning and of each plan",
        ),
        "planningTimeout": _phase("planning_ms", "the planner"),
        "executingTimeout": _phase("executing_ms", "a try at a plan"),
        "verifyingTimeout": _phase("verifying_ms", "a verifier"),
        "agent": _Setting(
            "agent", _COMMAND, "claude", "who plans and works, as --agent of `uwf plan run`"
        ),
        "verifier": _Setting("verifier", _COMMAND, "claude", "who verifies (the agent unless set)"),
        "ai": _Setting("ai", _COMMAND, "claude", "in place of the agent: called as CMD -p PROMPT"),
        "stopGrace": _Setting(
            "stop_grace_ms",
            _Form("a time such as 10s", _read_duration_ms),
            "10s",
            "how long a program may stay open that has told of its stop and left its report (10s "
            "unless set, 0 is for ever)",
        ),
        "hooks": _Setting(
            "hooks",
            _Form("true or false", _read_flag),
            "true",
            "whether AI tools get the stop hook in runs of plans (true unless set)",
        ),
    }.items()
}

MEANINGS: dict[str, str] = {name: setting.meaning for name, setting in _SETTINGS.items()}

COMMANDS = frozenset(name for name, each in _SETTINGS.items() if each.form is _COMMAND)

SELDOM = frozenset(
    name
    for name, each in _SETTINGS.items()
    if each.form is _PATH or each.field in {"address", "port"}
)
"""Where files lie, and where stop notices are received."""

TRUSTED = tuple(
    name for name, each in _SETTINGS.items() if each.form in (_PATH, _COMMAND, _ADDRESS)
)
"""What decides which programs run, which files are written or removed, and who may connect."""
