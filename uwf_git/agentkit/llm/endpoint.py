"""The endpoint of a model, read from settings and environment.

A key comes from the environment, never from a setting; the ``repr`` of an endpoint leaves it out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from uwf_git.agentkit.ladder import Extractor
from uwf_git.agentkit.turn import AdapterAnswer, AskFailed, load_settings, parse_seconds
from uwf_git.engine.turn_context import ExtractContext
from uwf_git.errors import BadUsage
from uwf_git.model.text import parse_float, plain_key

Api = Literal["openai", "anthropic"]

ENDPOINT_KEYS: dict[str, str] = {
    "api": "openai (the default, also for compatible endpoints) or anthropic",
    "url": "the URL of the endpoint, including /v1",
    "key-env": "the variable that holds the key (OPENAI_API_KEY, ANTHROPIC_API_KEY)",
    "max-tokens": "the most tokens of one answer",
    "temperature": "0 to 2; unset: the endpoint's default",
}
"""The settings of an endpoint besides ``model``, each with its meaning."""

# Anthropic requires a limit; all current models accept this one.
_ANTHROPIC_TOKENS = 16_384

_HOTTEST = 2.0


class Endpoint(NamedTuple):
    """A model, its URL and its key."""

    section: str
    """The section of its settings: ``uwf.llm``."""

    api: Api
    url: str
    model: str
    key_name: str

    key: str | None
    max_tokens: int | None = None
    temperature: float | None = None

    def __repr__(self) -> str:
        """Return which model it is, without the key."""
        return f"Endpoint({self.section}: {self.model} at {self.url})"


def get_setting(settings: Mapping[str, str], key: str) -> str:
    """Return the setting *key*, or ""."""
    return settings.get(plain_key(key), "").strip()


def read_endpoint(
    settings: Mapping[str, str], environ: Mapping[str, str], *, section: str
) -> Endpoint:
    """Read the endpoint that *settings* describe; *section* is where people find them."""
    api = _read_api(get_setting(settings, "api"), section)
    model = get_setting(settings, "model")
    if not model:
        raise AskFailed(
            "usage",
            f"{section} has no model",
            hint=f"name one: git config --global {section}.model MODEL",
        )
    # OPENAI_BASE_URL and OPENAI_API_KEY, or ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
    url = environ.get(f"{api.upper()}_BASE_URL") or f"https://api.{api}.com/v1"
    key_name = get_setting(settings, "key-env") or f"{api.upper()}_API_KEY"
    limit = get_setting(settings, "max-tokens")
    max_tokens = read_whole(limit, f"{section}.maxTokens") if limit else None
    return Endpoint(
        section=section,
        api=api,
        url=get_setting(settings, "url") or url,
        model=model,
        key_name=key_name,
        key=_read_key(environ.get(key_name, ""), key_name),
        max_tokens=max_tokens or (_ANTHROPIC_TOKENS if api == "anthropic" else None),
        temperature=_read_temperature(get_setting(settings, "temperature"), section),
    )


def join_url(url: str, path: str, *, version: str = "") -> str:
    """Return *path* below *url*, unless it is there, in its *version*; api-version queries stay."""
    base, mark, query = url.partition("?")
    base = base.rstrip("/").removesuffix(path).removesuffix(version)
    return f"{base}{version}{path}{mark}{query}"


def read_whole(text: str, name: str) -> int:
    """Read a whole number above 0; raise BadUsage if *text* is something else."""
    if text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) > 0:  # noqa: PLR2004 (digits of any number that is meant)
        return int(text)
    raise BadUsage(f"{name} is {text!r:.100}, not a whole number above 0", hint=f"{name}=4096")


def _read_api(text: str, section: str) -> Api:
    match text.lower():
        case "" | "openai":
            return "openai"
        case "anthropic":
            return "anthropic"
    raise BadUsage(f"{section}.api is {text!r:.100}", hint="it is openai or anthropic")


def _read_key(value: str, name: str) -> str | None:
    key = value.strip()
    if key and not (key.isascii() and key.isprintable()):
        # The HTTP library would refuse it too, and quote the key.
        raise AskFailed(
            "auth", f"the value of {name} is not a key: a header cannot hold it", hint=f"see {name}"
        )
    return key or None


def _read_temperature(text: str, section: str) -> float | None:
    if not text:
        return None
    value = parse_float(text)
    if value is None or value > _HOTTEST:
        name = f"{section}.temperature"
        raise BadUsage(f"{name} is {text!r:.100}, not a number from 0 to 2", hint=f"{name}=0.2")
    return value


# The extractor's settings, and its two uses: the last rung of the ladder, and a tool for agents.
#
# There is no extractor unless ``uwf.extractor.model`` is set; without it nothing more is
# imported. Source: seed 003: "the extractor is a general tool".

NAME = "extractor"


def find_extractor(environ: Mapping[str, str], role: str) -> Extractor | None:
    """Return the extractor that is configured for *role*, or None."""
    found = _find(environ, role)
    if found is None:
        return None

    def read(context: ExtractContext) -> AdapterAnswer:
        role = context.current_role
        return found(context.agent_content, role.output_schema, role.extract_prompt or "")

    return read


def extract(
    text: str,
    schema: dict[str, Any] | bool,  # noqa: FBT001 (true is a schema, no switch)
    *,
    prompt: str = "",
    environ: Mapping[str, str],
) -> Any:
    """Read the values of *schema* out of *text*, with the configured model.

    For an agent that needs a value before it runs, such as the path that a task names; *prompt*
    says how to find it.

    Raises:
        AskFailed: the text does not say it, or no extractor is configured (``missing``).
    """
    found = _find(environ, environ.get("UWF_ROLE", ""))
    if found is None:
        raise AskFailed(
            "missing",
            "no extractor is configured",
            hint=f"name its model: git config --global uwf.{NAME}.model MODEL",
        )
    return found(text, schema, prompt).structured


def _find(
    environ: Mapping[str, str], role: str
) -> Callable[[str, dict[str, Any] | bool, str], AdapterAnswer] | None:
    """Return a function of the text, the schema and the prompt; None without a configured model."""
    # UWF_MODEL names the model of agents; it alone must not configure an extractor.
    own = {name: value for name, value in environ.items() if name != "UWF_MODEL"}
    settings = load_settings(NAME, role, environ=own, words={})
    if not get_setting(settings, "model"):
        return None
    endpoint = read_endpoint(settings, environ, section=f"uwf.{NAME}")
    timeout_s = parse_seconds(settings, "timeout")

    def ask(text: str, schema: dict[str, Any] | bool, prompt: str) -> AdapterAnswer:  # noqa: FBT001 (see above)
        # The forms of requests cost 10 ms, and most turns call no extractor.
        from uwf_git.agentkit.llm.model import Model, ask_extractor  # noqa: PLC0415 (see above)

        model = Model(endpoint, environ)
        return ask_extractor(model, text, schema, prompt=prompt, timeout_s=timeout_s)

    return ask
