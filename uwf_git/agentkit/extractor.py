"""The extractor: a model of its own that reads the fields out of an agent's words.

Owns: whether there is one, and its two uses: the last rung of the ladder, and a tool for agents.
Knows nothing of: what it is asked (ask_extractor.py).
Always true: nobody is asked unless ``uwf.extractor.model`` is set; finding out costs nothing but
a look at the settings.
Source: seed 003: "the extractor is a general tool".
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agentkit.adapter import Answer, NoAnswer
from uwf_git.agentkit.context import ExtractContext
from uwf_git.agentkit.endpoint import Endpoint, get_setting, read_endpoint
from uwf_git.agentkit.ladder import Extractor
from uwf_git.agentkit.settings import load_settings, parse_seconds

NAME = "extractor"


class _Configured(NamedTuple):
    endpoint: Endpoint
    timeout_s: float | None
    environ: Mapping[str, str]

    def ask(self, text: str, schema: Any, prompt: str) -> Answer:
        # HTTP costs 15 ms, which who does not come here must not pay.
        from uwf_git.agentkit.ask_extractor import ask_extractor  # noqa: PLC0415 (see above)
        from uwf_git.agentkit.model_call import Model  # noqa: PLC0415 (see above)

        model = Model(self.endpoint, self.environ)
        return ask_extractor(model, text, schema, prompt=prompt, timeout_s=self.timeout_s)


def find_extractor(environ: Mapping[str, str], role: str) -> Extractor | None:
    """Give the extractor that is configured for *role*, or None.

    Raises:
        NoAnswer, BadUsage: it is configured in a way that cannot work.
    """
    found = _find(environ, role)
    if found is None:
        return None

    def read(context: ExtractContext) -> Answer:
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
    """Read what fits *schema* out of *text*, with the configured model.

    For an agent that has to know something before it runs, as the path that a task speaks of;
    *prompt* says how to find it.

    Raises:
        NoAnswer: the text does not say it, or no extractor is configured (``missing``).
        BadUsage: it is configured in a way that cannot work.
    """
    found = _find(environ, environ.get("UWF_ROLE", ""))
    if found is None:
        raise NoAnswer(
            "missing",
            "no extractor is configured",
            hint=f"name its model: git config --global uwf.{NAME}.model MODEL",
        )
    return found.ask(text, schema, prompt).structured


def _find(environ: Mapping[str, str], role: str) -> _Configured | None:
    # UWF_MODEL names the model of agents; that alone must not bring an extractor about.
    own = {name: value for name, value in environ.items() if name != "UWF_MODEL"}
    settings = load_settings(NAME, role, environ=own, words={})
    if not get_setting(settings, "model"):
        return None
    endpoint = read_endpoint(settings, environ, section=f"uwf.{NAME}")
    return _Configured(endpoint, parse_seconds(settings, "timeout"), environ)
