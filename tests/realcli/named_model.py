"""Programs that know the fake model by a longer name than the others.

Owns: asking them for it. Knows nothing of: what is tested.
"""

from dataclasses import replace
from typing import Any

from realcli.conftest import Cli
from realcli.other_vendors import MODELS
from realcli.vendors import Served

from uwf_git.agentkit.adapter import Asked


class NamedModelCli(Cli):
    """A program whose questions name the model as it does."""

    def question(self, model: Served, **more: Any) -> Asked:
        """Build a question, as ``Cli`` does."""
        asked = super().question(model, **more)
        return replace(asked, settings={**asked.settings, "model": MODELS[self.vendor.name]})
