import json
from collections.abc import Callable
from pathlib import Path

from cas_nodes import PERSON
from cli.ran import Ran

from uwf_git.model.builtin import META
from uwf_git.model.node import typed_hash

Cas = Callable[..., Ran]


def test_schema_from_a_file_becomes_a_node(cas: Cas, tmp_path: Path) -> None:
    file = tmp_path / "person.schema.json"
    file.write_text(json.dumps(PERSON))
    name = typed_hash(META, PERSON)

    assert json.loads(cas("schema", "put", str(file)).out) == {"hash": name, "new": True}
    assert cas("schema", "put", str(file), "--format", "text") == Ran(0, f"{name}\n", "")


def test_invalid_schema_is_refused_with_every_problem(cas: Cas) -> None:
    schema = {"type": "strin", "required": "name"}

    ran = cas("schema", "put", "-", fed=json.dumps(schema).encode())

    assert (ran.status, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: this is not a JSON Schema: 2 problems, the first at ")
    assert sorted(line.split(":")[0] for line in lines[1:3]) == ["  required", "  type"]
    assert lines[3].startswith("hint: ")
