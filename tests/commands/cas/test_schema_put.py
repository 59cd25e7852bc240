import pytest
from cas_nodes import new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas import put_schema


@pytest.mark.parametrize("schema", [True, False, {}])
def test_smallest_schemas_are_schemas(schema: object) -> None:
    assert put_schema(fresh_store(), new_caller(), schema).new
