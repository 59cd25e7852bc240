"""The extractor's settings, and its two uses: the last rung of the ladder, and a tool for agents.

There is no extractor unless ``uwf.extractor.model`` is set; without it nothing more is imported.
Source: seed 003: "the extractor is a general tool".
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agentkit.context import ExtractContext
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.extraction.ladder import Extractor
from uwf_git.agentkit.llm.endpoint import Endpoint, get_setting, read_endpoint
from uwf_git.agentkit.settings import load_settings, parse_seconds

NAME = "extractor"


class _Configured(NamedTuple):
    endpoint: Endpoint
    timeout_s: float | None
    environ: Mapping[str, str]

    def ask(self, text: str, schema: Any, prompt: str) -> AdapterAnswer:
        # The forms of requests cost 10 ms, and most turns call no extractor.
        from uwf_git.agentkit.llm.call import Model  # noqa: PLC0415 (see above)
        from uwf_git.agentkit.llm.extractor import ask_extractor  # noqa: PLC0415 (see above)

        model = Model(self.endpoint, self.environ)
        return ask_extractor(model, text, schema, prompt=prompt, timeout_s=self.timeout_s)


def find_extractor(environ: Mapping[str, str], role: str) -> Extractor | None:
    """Return the extractor that is configured for *role*, or None.

    Raises:
        AskFailed, BadUsage: its settings are wrong.
    """
    found = _find(environ, role)
    if found is None:
        return None

    def read(context: ExtractContext) -> AdapterAnswer:
        role = context.current_role
        return found.ask(context.agent_content, role.output_schema, role.extract_prompt or "")

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
        BadUsage: a setting is wrong.
    """
    found = _find(environ, environ.get("UWF_ROLE", ""))
    if found is None:
        raise AskFailed(
            "missing",
            "no extractor is configured",
            hint=f"name its model: git config --global uwf.{NAME}.model MODEL",
        )
    return found.ask(text, schema, prompt).structured


def _find(environ: Mapping[str, str], role: str) -> _Configured | None:
    # UWF_MODEL names the model of agents; it alone must not configure an extractor.
    own = {name: value for name, value in environ.items() if name != "UWF_MODEL"}
    settings = load_settings(NAME, role, environ=own, words={})
    if not get_setting(settings, "model"):
        return None
    endpoint = read_endpoint(settings, environ, section=f"uwf.{NAME}")
    return _Configured(endpoint, parse_seconds(settings, "timeout"), environ)
