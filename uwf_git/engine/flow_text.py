"""Check the texts of a flow: its conditions, ``over``, and the templates of inputs and bounds."""

from uwf_git.engine.expression import check_condition, split_template
from uwf_git.engine.javascript.evaluator import parse_template
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import ExpressionFailed
from uwf_git.model.definition.definition import FlowText

NAMES = ("state", "iteration", "prompt", "depth")
"""What every text of a flow may read; within maps their items too."""


def check_flow_text(text: FlowText) -> str | None:
    """Return what is wrong with *text*, as far as no state is needed to know; None: nothing."""
    is_expression = text.kind == "expression"
    try:
        if text.language == "jsonata" and is_expression:
            return check_condition(text.text)
        if text.language == "jsonata":
            split_template(text.text)
        else:
            parse = parse_expression if is_expression else parse_template
            parse(text.text, (*NAMES, *text.names))
    except ValueError as error:
        return str(error)
    except ExpressionFailed as error:
        where = "" if error.position is None else f" (at character {error.position})"
        return f"{error.problem}{where}"
    return None
