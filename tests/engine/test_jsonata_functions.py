"""The test suite of JSONata itself (see `jsonata_suite/README.md`): right, or refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonata.utils import Utils

from uwf_git.engine.expression import _own_value, _Program

SUITE = Path(__file__).with_name("jsonata_suite")
DATASETS = json.loads((SUITE / "datasets.json").read_text())

# Cases with a value for which we have an error: the part of the name, and why.
REFUSED = {
    "function-shuffle/": "its result varies",
    "function-tomillis/parseDateTime#1": "a picture without a year: the answer depends on today",
    "function-tomillis/parseDateTime#28": "the same",
    "function-tomillis/parseDateTime#29": "the same",
    "function-tomillis/parseDateTime#46": "jsonata reads no fraction longer than milliseconds",
    "function-contains/case007": "the text that is looked for is undefined",
    "function-formatInteger/formatInteger#43": "a number that no JavaScript knows exactly",
    "function-formatNumber/case014": "an exponent without a digit before it",
    "joins/library-joins#12": "jsonata groups an empty join wrong",
    "matchers/case000": "a function of one's own in the place of a regular expression",
}


def cases() -> Iterator[dict[str, Any]]:
    for line in (SUITE / "cases.jsonl").read_text().splitlines():
        yield json.loads(line)


def plain(value: Any) -> Any:
    if value is Utils.NULL_VALUE:
        return None
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, range)):
        return [plain(each) for each in value]
    # A text tells 1 from true, and 1.0 is 1.
    return f"{value!r}" if isinstance(value, bool) else value


def outcome(case: dict[str, Any]) -> tuple[str, Any]:
    data = case["data"] if "data" in case else DATASETS.get(case.get("dataset"))
    has_input = "data" in case or "dataset" in case
    try:
        program = _Program(case["expr"])
        for name, value in case.get("bindings", {}).items():
            program.assign(name, _own_value(value))
        value = program.evaluate(_own_value(data) if has_input else None)
    except Exception:  # noqa: BLE001 (jsonata lets all kinds out; what is told is tested elsewhere)
        return "error", None
    return ("undefined", None) if value is None else ("value", plain(value))


def expected(case: dict[str, Any]) -> tuple[str, Any]:
    if "error" in case:
        return "error", None
    return ("value", plain(case["result"])) if "result" in case else ("undefined", None)


@pytest.fixture(scope="module")
def differing() -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for case in cases():
        told = outcome(case)
        if told != expected(case):
            found[case["name"]] = told
    return found


def test_no_answer_differs_from_the_one_of_jsonata(differing: dict[str, tuple[str, Any]]) -> None:
    assert {name: told for name, told in differing.items() if told[0] != "error"} == {}


def test_only_what_is_listed_is_refused(differing: dict[str, tuple[str, Any]]) -> None:
    refused = {name for name, told in differing.items() if told[0] == "error"}
    assert {name for name in refused if not name.startswith(tuple(REFUSED))} == set()
    assert {part for part in REFUSED if not any(name.startswith(part) for name in refused)} == set()


@pytest.mark.parametrize("name", ["$sum", "$average"])
def test_numbers_are_added_up_alike_by_every_python(name: str) -> None:
    tenths = [0.1] * 10

    total = _Program(f"{name}({tenths})").evaluate(None)

    assert total == 0.9999999999999999 / (1 if name == "$sum" else 10)
