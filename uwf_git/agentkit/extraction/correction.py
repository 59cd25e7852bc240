"""The prompt that asks an agent again when its answer holds no fields that fit."""

from uwf_git.agentkit.context import Role
from uwf_git.agents.reply import on_one_line
from uwf_git.engine.prompt import build_answer_format

_LONGEST_PROBLEM = 1_000


def build_correction(problem: str, role: Role) -> str:
    """Return the prompt that names the *problem* and repeats how to answer."""
    problem = on_one_line(problem)[:_LONGEST_PROBLEM].rstrip(".")
    return (
        "Your work is done and kept; only the fields of your answer could not be read: "
        f"{problem}.\n\n"
        "Do not work on, and call no more tools. Answer once more with the fields, from what you "
        "know already; do not make up a value that you do not know.\n\n"
        f"# How to answer\n\n{build_answer_format(role)}\n"
    )
