"""Check the texts of a flow: its conditions, ``over``, and the templates of inputs and bounds."""

from uwf_git.engine.expression import check_condition
from uwf_git.engine.jsonata_template import BadTemplate, split_template
from uwf_git.model.definition.surroundings import FlowText


def check_flow_text(text: FlowText) -> str | None:
    """Return what is wrong with *text*, as far as no state is needed to know; None: nothing."""
    if text.language != "jsonata":
        return None
    if text.kind == "expression":
        return check_condition(text.text)
    try:
        split_template(text.text, check_condition)
    except BadTemplate as error:
        return str(error)
    return None
