import json
from collections.abc import Callable

from cas_nodes import PERSON, new_caller
from cli.ran import Ran

from uwf_git.commands.cas import put_schema
from uwf_git.model.builtin import BUILTIN_NODES, META
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_rows_are_the_builtin_schemas_and_then_the_others(cas: Cas, store: Store) -> None:
    person = put_schema(store, new_caller(), PERSON).hash

    rows = json.loads(cas("schema", "list").out)

    assert rows[0] == {"hash": META, "title": "JSON Schema", "builtin": True}
    assert rows[-1] == {"hash": person, "title": "Person", "builtin": False}
    assert len(rows) == len(BUILTIN_NODES) + 1


def test_limit_is_kept(cas: Cas) -> None:
    assert len(json.loads(cas("schema", "list", "--limit", "3").out)) == 3
