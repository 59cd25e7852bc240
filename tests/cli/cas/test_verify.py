import json
from collections.abc import Callable

import pytest
from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller, put_person
from cli.ran import Ran

from uwf_git.commands.cas import put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_whole_nodes_are_ok(cas: Cas, store: Store) -> None:
    ada = put_person(store, name="Ada")

    ran = cas("verify", ada[:6].lower(), META)

    assert ran.status == 0
    assert json.loads(ran.out) == {"ok": True, "checked": [ada, META], "problems": []}
    assert cas("verify", ada, "--format", "text").out == "ok: 1 node\n"
    assert cas("verify", ada, META, "--format", "text").out == "ok: 2 nodes\n"


def test_problems_are_listed_with_their_places(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = add_unchecked(store, schema, {"name": 5, "friend": NOWHERE})

    ran = cas("verify", ada)

    assert ran.status == 5
    assert json.loads(ran.out) == {
        "ok": False,
        "checked": [ada],
        "problems": [
            {
                "node": ada,
                "message": "it breaks its schema: 5 is not of type 'string'",
                "path": "name",
            },
            {"node": ada, "message": f"it refers to {NOWHERE}, which is not in this store"},
        ],
    }


def test_text_is_a_line_a_problem(cas: Cas, store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    ran = cas("verify", NOWHERE, "--format", "text")

    assert ran.status == 5
    told = f"{NOWHERE}: refs/cas/nodes: node {NOWHERE} holds other content: its name would be "
    assert ran.out.startswith(told)
    assert ran.out.count("\n") == 1


@pytest.mark.parametrize(("words", "status"), [([], 2), ([NOWHERE], 1), (["zzz"], 2)])
def test_missing_node_is_refused(words: list[str], status: int, cas: Cas) -> None:
    ran = cas("verify", *words)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("error: ")
