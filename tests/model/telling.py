"""Goldens of tables: each case of a file of JSON, and what its function answers or refuses."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from uwf_git.errors import UwfError


def tell(answer: Callable[..., object], case: list[Any]) -> str:
    try:
        return json.dumps(answer(*case), default=asdict)
    except (UwfError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        if isinstance(error, UwfError):
            told = f"{error.code}: {error} ({error.hint}) {json.dumps(error.facts, default=str)}"
        return told.encode("unicode_escape").decode()


def tell_cases(place: Path, answers: Mapping[str, Any]) -> str:
    """The sections of the file are named as the answers; a case lists the arguments."""
    sections: dict[str, list[list[Any]]] = json.loads(place.read_text())
    assert list(sections) == list(answers)
    told: list[str] = []
    for name, cases in sections.items():
        told += [f"# {name}", ""]
        for case in cases:
            told += [f"> {', '.join(map(json.dumps, case))}", tell(answers[name], case), ""]
    return "\n".join(told)
