import json
from collections.abc import Callable

from cli.ran import Ran

from uwf_git.commands.cas import BUILTIN_TYPES
from uwf_git.model.builtin import META, TEXT


def test_builtin_schemas_are_named(cas: Callable[..., Ran]) -> None:
    assert json.loads(cas("bootstrap").out) == {"meta": META, "schemas": BUILTIN_TYPES}


def test_text_is_a_table(cas: Callable[..., Ran]) -> None:
    lines = cas("bootstrap", "--format", "text").out.splitlines()

    assert lines[:3] == [
        "NAME              HASH",
        f"(meta-schema)     {META}",
        f"Text              {TEXT}",
    ]
