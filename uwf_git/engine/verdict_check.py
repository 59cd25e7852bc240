"""Verdicts of recorded tries, asked again: as far as that is cheap."""

from typing import Any

from uwf_git.engine.javascript.evaluator import evaluate_condition
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.values import Budget, ExpressionFailed
from uwf_git.model.event_folds import Verdict
from uwf_git.model.flow import Flow, FlowNode

# Anybody may push a thread of many verdicts.
_LONGEST = 500
_SHARE = 200


def judge_again(flow: Flow, node: FlowNode, meta: Any) -> Verdict:
    """Return what a verdict with *meta* at *node* says, as cheaply as a commit may be checked.

    It is ``unknown`` if ``when`` is long, costs much or reads more than the meta, or in JSONata,
    whose limits are those of a process.
    """
    when = str(node.verified_by["when"])
    if flow.language != "javascript" or len(when) > _LONGEST:
        return "unknown"
    try:
        expression = parse_expression(when, ("meta",))
        budget = Budget(share=_SHARE)
        is_accepted = evaluate_condition(expression, {"meta": meta}, budget)
    except ExpressionFailed:
        return "unknown"
    return "accepted" if is_accepted else "rejected"
