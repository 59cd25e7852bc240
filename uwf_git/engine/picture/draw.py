"""From what is to be drawn to the text of a picture, in one of three forms."""

from collections.abc import Callable, Mapping

from uwf_git.engine.picture.labels import Drawing
from uwf_git.engine.picture.mermaid import render_mermaid
from uwf_git.engine.picture.nested import lay_out_flow
from uwf_git.engine.picture.outline import render_outline
from uwf_git.engine.picture.plan import GraphPlan, Plan, Subject, plan_flow, plan_graph
from uwf_git.engine.picture.spine import lay_out_graph
from uwf_git.engine.picture.svg import render_svg
from uwf_git.model.flow import Flow

DEFAULT_WIDTH = 80


def make_plan(subject: Subject, *, is_whole: bool = False) -> Plan:
    """Return what the picture of *subject* shows; if it *is whole*, no branches are folded."""
    if isinstance(subject.moves, Flow):
        return plan_flow(subject, subject.moves, is_whole=is_whole)
    return plan_graph(subject, subject.moves)


def lay_out(plan: Plan) -> Drawing:
    return lay_out_graph(plan) if isinstance(plan, GraphPlan) else lay_out_flow(plan)


def draw(subject: Subject, form: str, *, width: int = DEFAULT_WIDTH, is_whole: bool = False) -> str:
    """Return the picture of *subject* in a *form* of ``FORMS``; *width* is for text, in columns."""
    plan = make_plan(subject, is_whole=is_whole)
    return render_outline(plan, width) if form == "text" else _RENDERERS[form](plan)


_RENDERERS: Mapping[str, Callable[[Plan], str]] = {
    "svg": lambda plan: render_svg(lay_out(plan)),
    "mermaid": render_mermaid,
}

FORMS: tuple[str, ...] = ("text", *_RENDERERS)
