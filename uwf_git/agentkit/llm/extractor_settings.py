"""The extractor's settings, and its two uses: the last rung of the ladder, and a tool for agents.

There is no extractor unless ``uwf.extractor.model`` is set; without it nothing more is imported.
Source: seed 003: "the extractor is a general tool".
"""

from collections.abc import Callable, Mapping
from typing import Any

from uwf_git.agentkit.context import ExtractContext
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.extraction.ladder import Extractor
from uwf_git.agentkit.llm.endpoint import get_setting, read_endpoint
from uwf_git.agentkit.settings import load_settings, parse_seconds

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
        from uwf_git.agentkit.llm.call import Model  # noqa: PLC0415 (see above)
        from uwf_git.agentkit.llm.extractor import ask_extractor  # noqa: PLC0415 (see above)

        model = Model(endpoint, environ)
        return ask_extractor(model, text, schema, prompt=prompt, timeout_s=timeout_s)

    return ask
