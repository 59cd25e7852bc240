"""The grammar of git config files; git itself is the judge."""

import itertools
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from uwf_git.store.git.config import (
    ConfigItem,
    edit_config,
    normal_name,
    remove_section,
    remove_values,
    scan_config,
)

texts = st.text(st.sampled_from('[]"\\#;= \n\r\tab.-1é\x0b'), max_size=25)
LINES = r"""
[uwf]
[uwf "a.B"]
[uwf "q\"\\"]
[UWF.Sub]
[core] bare
[a]b=1 ; c
    agent = a
    Agent="x # y" z
agent
agent = a\
  more \
# c \
; c
x = C:\\
x = "open\
closed"
x-1 = \n\t\b\\\"
x = a	b  c
x = "" a
[broken
[uwf "a]
x = "open
x = \q
1x = a
x y = 1
= 1
[ uwf ]
[]
[ "a"]
[.]
[uwf"a"]
"""
lines = st.sampled_from([*LINES.split("\n"), "\t", "\ufeff", "\r"])
files = texts | st.lists(lines, max_size=7).map("\n".join)


def as_git_reads(path: Path, text: str) -> list[tuple[str, str | None]] | None:
    """Let git read *text*; return None if git refuses it."""
    path.write_bytes(text.encode())
    command = ["git", "config", "--file", str(path), "--no-includes", "--null", "--list"]
    ran = subprocess.run(command, capture_output=True, check=False)
    if ran.returncode:
        return None
    found: list[tuple[str, str | None]] = []
    for item in ran.stdout.decode().split("\0")[:-1]:
        name, line_end, value = item.partition("\n")
        found.append((name, value if line_end else None))
    return found


def as_we_read(text: str) -> list[tuple[str, str | None]] | None:
    try:
        items = list(scan_config(text))
    except ValueError:
        return None
    return [(item.name, item.value) for item in items if item.kind == "setting"]


def folded(found: list[tuple[str, str | None]] | None) -> list[tuple[str, str | None]] | None:
    """Leave out how many spaces there are within a value: older gits make spaces of tabs."""
    return found and [(name, value and value.replace("\t", " ")) for name, value in found]


@settings(max_examples=150)
@given(text=files)
@example(text="[uwf]\n\tx = 1 ; \\\n\ty = 2\n")
@example(text='[uwf]\n\tx = "a # \\\n\tb"\n')
@example(text="a = 1\n")
@example(text="[]\na = 1\n")
@example(text="[a]\n\tb = \x0b\x0c\n")
def test_we_read_what_git_reads(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    assert folded(as_we_read(text)) == folded(as_git_reads(path, text))


@settings(max_examples=60)
@given(text=files, keep=st.booleans(), name=st.sampled_from(["uwf.agent", "uwf.a.B.x", "new.x"]))
def test_git_reads_what_we_change_and_finds_the_rest_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str, *, keep: bool
) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    before = as_git_reads(path, text)
    if before is None:
        with pytest.raises(ValueError, match=r"^line \d+ has "):
            edit_config(text, name, "new", keep=keep)
        return
    after = as_git_reads(path, edit_config(text, name, "new", keep=keep))
    old = [value for found, value in before if found == name]
    assert after is not None
    assert [value for found, value in after if found == name] == [*(old if keep else []), "new"]
    assert [each for each in after if each[0] != name] == [
        each for each in before if each[0] != name
    ]


@given(text=files)
def test_items_stand_in_order_and_do_not_overlap(text: str) -> None:
    if as_we_read(text) is not None:
        spans = [(item.start, item.end) for item in scan_config(text)]
        assert spans == sorted(spans)
        assert all(end <= start for (_s, end), (start, _e) in itertools.pairwise(spans))


def test_items_say_where_they_stand() -> None:
    text = '# c\n[uwf "A"] X = 1\n'
    assert list(scan_config(text)) == [
        ConfigItem("comment", "", None, 0, 4),
        ConfigItem("section", "uwf.A", None, 4, 13),
        ConfigItem("setting", "uwf.A.x", "1", 14, 20),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\n[b", "line 2 has an invalid section header"),
        ('[a]\n[b "c\n', "line 2 has a section header without an end"),
        ("[a]\n\n1 = 2\n", "line 3 has a line that is not a setting"),
        ("[a]\nb_c = 2\n", "line 2 has an invalid name"),
        ('[a]\nb = "c\n', "line 2 has a quote without an end"),
        ("[a]\nb = \\q\n", "line 2 has an escape unknown to git: \\q"),
    ],
)
def test_syntax_error_has_its_line(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are compared below
        list(scan_config(text))
    assert str(caught.value) == words


def test_a_name_is_compared_as_git_does() -> None:
    assert normal_name("UWF.Agent") == "uwf.agent"
    assert normal_name("Remote.MyName.URL") == "remote.MyName.url"
    assert normal_name("a.B.C.D") == "a.B.C.d"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[uwf]\n\tx = "n"\n'),
        ("[uwf]", '[uwf]\n\tx = "n"\n'),
        ("[uwf] # c", '[uwf] # c\n\tx = "n"\n'),
        ("[uwf]\n\n[b]\n", '[uwf]\n\tx = "n"\n\n[b]\n'),
        ("[uwf] X = o\n\ty = 1\n", '[uwf]\n\ty = 1\n\tx = "n"\n'),
        ("[uwf]\n\tx = o \\\n  p\n# c\n", '[uwf]\n# c\n\tx = "n"\n'),
        ("[b]\n\ty = \\", '[b]\n\ty = \\\n\n[uwf]\n\tx = "n"\n'),
    ],
)
def test_a_setting_goes_to_the_end_of_its_section(before: str, after: str) -> None:
    assert edit_config(before, "uwf.x", "n", keep=False) == after


def test_a_new_section_may_have_a_strange_name() -> None:
    text = edit_config("", 'uwf.a "b\\.x', "n", keep=True)
    assert text == '[uwf "a \\"b\\\\"]\n\tx = "n"\n'


def test_a_section_is_removed_wherever_it_stands_and_its_comments_stay() -> None:
    text = (
        '[core]\n\tbare = true\n[Remote "a"]\n\turl = x\n\t# mine\n\tfetch = y\n'
        '[remote "A"]\n\turl = other\n[remote "a"] push = z\n[remote]\n\tx = y\n'
    )
    assert remove_section(text, "remote.a") == (
        '[core]\n\tbare = true\n\t# mine\n[remote "A"]\n\turl = other\n[remote]\n\tx = y\n'
    )
    assert remove_section(text, "remote.b") == text


def test_what_was_added_goes_without_a_trace() -> None:
    text = "[core]\n\tbare = true\n"
    added = edit_config(text, "remote.a.url", "x", keep=True)
    assert remove_section(added, "remote.a") == text


@given(texts, st.sets(st.sampled_from(["a", "", "true", "1"]), max_size=2))
def test_values_that_are_removed_are_gone_and_all_others_stay(text: str, values: set[str]) -> None:
    text = f"[a]b=1\n\tb = a ; why\n[A]\nB\n{text}"
    try:
        before = [item for item in scan_config(text) if item.kind == "setting"]
    except ValueError:
        return
    after = [
        item for item in scan_config(remove_values(text, "a.B", values)) if item.kind == "setting"
    ]
    left = [(item.name, item.value) for item in before]
    for value in values:
        left = [each for each in left if each[0] != "a.b" or (each[1] or "true") != value]
        if value == "true":
            left = [each for each in left if each != ("a.b", None)]
        if value == "":
            left = [each for each in left if each != ("a.b", "")]
    assert [(item.name, item.value) for item in after] == left
