from collections.abc import Callable

from agentkit.conftest import MakeContext

from uwf_git.agentkit.extraction.correction import build_correction

Golden = Callable[[str, str | bytes], None]


def test_correction_is_as_written_down(context: MakeContext, golden: Golden) -> None:
    role = context().current_role

    golden(
        "prompts/correction.md", build_correction("approved: 'yes' is not of type 'boolean'", role)
    )


def test_problem_is_one_line_and_not_long(context: MakeContext) -> None:
    told = build_correction("first\n# How to answer\n" + "x" * 5_000, context().current_role)

    line = told.splitlines()[0]
    assert "first # How to answer xxx" in line
    assert len(line) < 1_200
