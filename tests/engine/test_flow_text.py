from typing import Literal

import pytest

from uwf_git.engine.rehearsal import check_flow_text
from uwf_git.model.definition.definition import FlowText

Kind = Literal["expression", "template"]


@pytest.mark.parametrize(
    ("language", "kind", "text"),
    [
        ("jsonata", "expression", "state.a = 1"),
        ("jsonata", "template", "a ${state.a & '}'} b"),
        ("javascript", "expression", "state.a === 1 && iteration < 5"),
        ("javascript", "expression", "item.name !== prompt"),
        ("javascript", "template", "a ${state.a || '}'} b"),
        ("javascript", "template", "no expression"),
    ],
)
def test_what_is_right(language: str, kind: Kind, text: str) -> None:
    assert check_flow_text(FlowText(kind, text, language, ("item",))) is None


@pytest.mark.parametrize(
    ("language", "kind", "text", "problem"),
    [
        ("jsonata", "expression", "state.a === 1", "compares with ="),
        ("jsonata", "template", "${state.a === 1}", "compares with ="),
        ("javascript", "expression", "state.a = 1", "===, and an expression cannot assign"),
        ("javascript", "expression", "other.name", "(at character 1)"),
        ("javascript", "template", "a ${state.}", "(at character 11)"),
        ("javascript", "template", "a ${state", "(at character"),
        ("javascript", "expression", "item", "(at character 1)"),
    ],
)
def test_what_is_wrong(language: str, kind: Kind, text: str, problem: str) -> None:
    found = check_flow_text(FlowText(kind, text, language))
    assert found is not None
    assert problem in found
