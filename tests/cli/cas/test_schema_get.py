import json
from collections.abc import Callable

from cas_nodes import PERSON, new_caller
from cli.ran import Ran

from uwf_git.commands.cas import put_schema
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_schema_is_printed_alone(cas: Cas, store: Store) -> None:
    name = put_schema(store, new_caller(), PERSON).hash

    assert json.loads(cas("schema", "get", name[:6].lower()).out) == PERSON
    assert cas("schema", "get", "Text").out == '{"title":"Text","type":"string"}\n'
    assert cas("schema", "get", "Text", "--format", "text").out == (
        '{\n  "title": "Text",\n  "type": "string"\n}\n'
    )
