"""The environment of a nested agent program: an allow list.

Never passed on: markers by which a program notices that it runs inside another agent (CLAUDECODE,
COPILOT_CLI), since it would behave differently, and the variables of a git hook.
"""

from collections.abc import Mapping, Sequence

from uwf_git.git_environment import LOCAL_VARIABLES

_ALLOWED = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
    "NO_COLOR", "TMPDIR", "TMP", "TEMP", "XDG_*", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
    "GIT_*", "UWF_*",
)  # fmt: skip

_NEVER = frozenset({
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "COPILOT_CLI", "COPILOT_RUN_APP",
    "COPILOT_AGENT_SESSION_ID", "GEMINI_CLI", "QWEN_CODE", "CURSOR_AGENT", "CURSOR_TRACE_ID",
    "OPENCODE", "OPENCODE_PID", "GOOSE_TERMINAL", "AGENT",
})  # fmt: skip

# Keys for our own model calls; the program has its own.
_OUR_SECRETS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def allowed_environment(environ: Mapping[str, str], *, more: Sequence[str]) -> dict[str, str]:
    """Return the part of *environ* that a nested program may see.

    *more* adds names, or prefixes such as ``ANTHROPIC_*``, that this program needs. A full name
    overrides the exclusions.
    """
    patterns = (*_ALLOWED, *more)
    exact = {each for each in patterns if not each.endswith("*")}
    beginnings = tuple(each[:-1] for each in patterns if each.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if name in exact or (name.startswith(beginnings) and not _is_excluded(name))
    }


def _is_excluded(name: str) -> bool:
    return name in _NEVER | LOCAL_VARIABLES or (
        name.startswith("UWF_") and name.endswith(_OUR_SECRETS)
    )
