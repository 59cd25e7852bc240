import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uwf_git.model.yaml.include import RESERVED, CannotInclude, resolve_include


def test_path_is_relative_to_the_file_that_it_stands_in() -> None:
    for text, inside, path in [
        ("a.md", "", "a.md"),
        ("a.md", "flow.yaml", "a.md"),
        ("./a//b.md", "flow.yaml", "a/b.md"),
        ("b.md", "parts/a.yaml", "parts/b.md"),
        ("../b.md", "parts/a.yaml", "b.md"),
        ("../parts/b.md", "parts/a.yaml", "parts/b.md"),
        ("sub/../../b.md", "parts/a.yaml", "b.md"),
        ("wörter/größe 1.md", "", "wörter/größe 1.md"),
        ("parts/nodes/x.md", "", "parts/nodes/x.md"),
        ("gitter.md", "", "gitter.md"),
        ("~x/../a.md", "parts/a.yaml", None),
        ("..", "parts/a.yaml", None),
    ]:
        if path is None:
            with pytest.raises(CannotInclude):
                resolve_include(text, inside=inside)
        else:
            assert resolve_include(text, inside=inside) == path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no file"),
        ("/etc/passwd", "never absolute"),
        ("~/x", "never absolute"),
        ("C:/x", "never absolute"),
        ("C:\\x", "never absolute"),
        ("a\\b", "use / between"),
        ("../x", "outside the folder"),
        ("a/../../x", "outside the folder"),
        ("..", "outside the folder"),
        (".", "is a folder"),
        ("a/", "is a folder"),
        ("a\nb", "printable"),
        ("a\0b", "printable"),
        ("\u200c.git/config", "printable"),
        ("x" * 501, "500"),
        ("x" * 256, "too long"),
        (".git/config", ".git"),
        ("a/.GIT/x", ".GIT"),
        ("a/.gitmodules", ".gitmodules"),
        ("GIT~1/x", "GIT~1"),
        ("workflow.yaml", "rename it"),
        ("Head.json", "rename it"),
        ("nodes/a.md", "rename it"),
    ],
)
def test_invalid_path_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(CannotInclude, match=said) as caught:
        resolve_include(text, inside="")

    assert caught.value.exit_status == 1


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "", ".git", "nodes", "~", "é"]), max_size=8),
    st.sampled_from(["", "a.yaml", "a/b.yaml", "a/b/c.yaml"]),
)
@example(["a", "..", "..", "x"], "a/b.yaml")
def test_whatever_is_written_the_path_stays_below_the_folder(parts: list[str], inside: str) -> None:
    try:
        path = resolve_include("/".join(parts), inside=inside)
    except CannotInclude:
        return
    assert path == posixpath.normpath(path)
    assert not path.startswith(("/", "../"))
    assert path.split("/")[0] not in {"..", ".", *RESERVED}
    assert resolve_include(f"./{path}", inside="") == path
