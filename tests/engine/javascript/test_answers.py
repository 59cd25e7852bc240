"""The table answers.json holds node's answers (node.py wrote them): the same, or refused."""

import json
from typing import Any

from engine.javascript.node import TABLE
from engine.javascript.told import REFUSED, ours

from uwf_git.engine.javascript.evaluator import evaluate, evaluate_condition
from uwf_git.engine.javascript.parser import parse_expression

_READ = json.loads(TABLE.read_text())
NAMES: dict[str, Any] = _READ["names"]
ANSWERED: list[tuple[str, Any]] = _READ["answered"]
REFUSALS: list[tuple[str, Any]] = _READ["refused"]


def test_the_table_is_large() -> None:
    assert len(ANSWERED) >= 300
    assert len(REFUSALS) >= 200


def test_the_answers_are_nodes() -> None:
    mine = [(text, ours(text, NAMES)) for text, _ in ANSWERED]
    assert mine == [tuple(row) for row in ANSWERED]


def test_what_could_be_another_answer_is_refused() -> None:
    assert [text for text, _ in REFUSALS if ours(text, NAMES) != REFUSED] == []


def test_a_condition_is_the_truth_of_the_value() -> None:
    wrong = [
        text
        for text, answer in ANSWERED
        if evaluate_condition(parse_expression(text), NAMES) is not _truth(answer)
    ]
    assert wrong == []


def _truth(answer: Any) -> bool:
    match answer:
        case {"s": value}:
            return bool(value)
        case {"n": number}:
            return number not in {"0", "-0", "NaN"}
        case {"u": _}:
            return False
    return answer is True or isinstance(answer, dict)


def test_a_value_shares_nothing_with_the_data() -> None:
    before = json.dumps(NAMES)
    value = evaluate(parse_expression("[state, state.arr.filter(x => x)]"), NAMES)
    value[0]["nested"]["items"].clear()
    value[0]["arr"].append(4)
    value[1].append(5)
    assert json.dumps(NAMES) == before
