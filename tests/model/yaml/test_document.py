import pytest

from uwf_git.model.yaml.include import Includes
from uwf_git.model.yaml.reader import parse_yaml

FILES = {
    "roles.yaml": b"a:\n  say: x\nb: !include inner/b.yaml\n",
    "inner/b.yaml": b"\nlist:\n  - 1\n  - 2\n",
}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (None, 1)),
        (("name",), (None, 1)),
        (("roles",), (None, 2)),
        (("roles", "a"), ("roles.yaml", 1)),
        (("roles", "a", "say"), ("roles.yaml", 2)),
        (("roles", "b"), ("roles.yaml", 3)),
        (("roles", "b", "list", 1), ("inner/b.yaml", 4)),
        (("roles", "c"), None),
        (("name", "x"), None),
    ],
)
def test_place_is_the_file_and_line_in_which_a_key_stands(
    path: tuple[str | int, ...], place: tuple[str | None, int] | None
) -> None:
    document = parse_yaml(b"name: x\nroles: !include roles.yaml\n", includes=Includes(FILES.get))  # type: ignore[arg-type]  # every file that is asked for is there

    assert document.place(path) == place
    assert document.line(path) == (None if place is None else place[1])
