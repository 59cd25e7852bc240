"""The manual is true: the console blocks of README.md, docs/ and transcripts/ do what they show."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import transcript
from cli.program import entries
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.app.lazy_group import LazyCommand
from uwf_git.cli.uwf import UWF

ROOT = Path(__file__).parent.parent

# The folders that a reader has in a checkout.
MATERIAL = ("workflows",)


def transcripts(root: Path) -> Iterator[Path]:
    """List the transcripts below *root* that exist; of docs/ the pages with console blocks."""
    if (root / "README.md").exists():
        yield root / "README.md"
    for path in sorted((root / "docs").glob("*.md")):
        if "```console" in path.read_text(encoding="utf-8"):
            yield path
    yield from sorted((root / "tests" / "transcripts").glob("*.md"))


def told(path: Path, work: Path) -> list[str]:
    """Run one transcript in the new directory *work* and list its errors."""
    try:
        blocks = transcript.parse(path.read_text(encoding="utf-8"))
    except transcript.Malformed as malformed:
        return [f"{path.name}: {malformed}"]
    if not blocks:
        return [f"{path.name}: no console block, so nothing in it is known to be true"]
    commands = [command for block in blocks if not block.skipped for command in block.commands]
    if not commands:
        pytest.skip("; ".join(f"line {block.line}: {block.skipped}" for block in blocks))
    work.mkdir()
    for name in MATERIAL:
        if (path.parent / name).is_dir():
            shutil.copytree(path.parent / name, work / name)
    return transcript.complaints(path.name, blocks, transcript.run(commands, cwd=work))


def test_readme_does_what_it_shows(tmp_path: Path) -> None:
    complaints = told(ROOT / "README.md", tmp_path / "work")

    if complaints:
        pytest.fail("\n\n".join(complaints), pytrace=False)


def test_every_verb_has_a_transcript() -> None:
    typed = "\n".join(
        line
        for path in transcripts(ROOT)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("$ ", "> "))
    )
    verbs = [
        path
        for path, entry in entries(UWF, "uwf")
        if isinstance(entry, LazyCommand) and not entry.hidden
    ]

    assert [verb for verb in verbs if not re.search(rf"\b{verb}\b", typed)] == []


def wrong_with(tmp_path: Path, *lines: str) -> str:
    """Run one console block that holds *lines* and list the errors."""
    file = tmp_path / "story.md"
    file.write_text("\n".join(["# Story", "", "```console", *lines, "```", ""]))
    return "\n".join(told(file, tmp_path / "work"))


TRUE = {
    "output": ["$ echo hi", "hi"],
    "both streams in order": ["$ echo a; echo b >&2; echo c", "a", "b", "c"],
    "blank lines at the ends": ["$ echo a; echo", "a", "$ printf 'b'", "b", ""],
    "any lines": ["$ seq 20", "1", "...", "19", "..."],
    "any lines may be none": ["$ seq 2", "...", "1", "...", "2", "..."],
    "any characters": ["$ echo took 12 ms", "took [..] ms"],
    "no regular expression": ["$ echo '1.5 (a+)'", "1.5 (a+)"],
    "status": ["$ echo bad; false", "? 1", "bad"],
    "status is kept": ["$ (exit 7)", "? 7", "$ echo $?", "7"],
    "here-document": ["$ cat <<'E'", "> a $b", ">", ">  c", "> E", "a $b", "", " c"],
    "directory is kept": ["$ mkdir d && cd d", "$ pwd", "[..]/d"],
    "variables are kept": ["$ x=1", "$ f() { echo $x; }", "$ f", "1"],
    "no input": ["$ cat"],
    "no terminal": ["$ test -t 1 || echo none", "none"],
    "last command may exit": ["$ echo bye; exit 3", "? 3", "bye"],
    "missing command": ["$ uwf-no-such-command", "? 127", "[..]not found"],
    "package under test": ["$ command -v uwf; command -v json-cas", "[..]/uwf", "[..]/json-cas"],
    "sealed": ["$ echo $HOME $GIT_AUTHOR_NAME", "[..]/home A U Thor"],
}


@pytest.mark.parametrize("lines", TRUE.values(), ids=TRUE.keys())
def test_true_transcript_passes(lines: list[str], tmp_path: Path) -> None:
    assert wrong_with(tmp_path, *lines) == ""


def test_wrong_output_is_shown_as_a_diff_with_file_and_line(tmp_path: Path) -> None:
    said = wrong_with(
        tmp_path, "$ true", "$ printf 'a\\nx\\n9 ms\\nz\\n'", "a", "b", "[..] ms", "..."
    )

    assert said.startswith("story.md:5: $ printf")
    assert re.findall(r"^[-+][^-+].*", said, re.MULTILINE) == ["-b", "+x"]
    assert " [..] ms\n ..." in said


def test_wrong_status_is_reported(tmp_path: Path) -> None:
    assert "exit status 3, expected 0" in wrong_with(tmp_path, "$ (exit 3)")
    (tmp_path / "work").rmdir()
    assert "exit status 0, expected 3" in wrong_with(tmp_path, "$ true", "? 3")


@pytest.mark.parametrize("ending", ["exit 0", "if"])
def test_shell_that_ends_early_is_reported(ending: str, tmp_path: Path) -> None:
    said = wrong_with(tmp_path, "$ echo a", "a", f"$ {ending}", "...", "$ echo b", "b")

    assert "story.md:6: the shell ended here" in said


def test_command_that_hangs_is_ended_and_reported(tmp_path: Path) -> None:
    commands = [transcript.Command(n, text, 0, ()) for n, text in enumerate(["cd .", "sleep 63"])]
    blocks = [transcript.Block(1, tuple(commands), None)]
    (tmp_path / "work").mkdir()

    outcomes = transcript.run(commands, cwd=tmp_path / "work", timeout_s=0.3)

    assert transcript.complaints("f", blocks, outcomes)[0].startswith(
        "f:1: $ sleep 63\ndid not end"
    )


def test_state_is_kept_from_block_to_block_and_skipped_blocks_are_not_run(tmp_path: Path) -> None:
    file = tmp_path / "story.md"
    file.write_text(
        "1. First:\n\n"
        "   ```console\n   $ x=1\n   ```\n\n"
        "<!-- transcript: skip (needs the network) -->\n\n"
        "```console\n$ x=2\n```\n\n"
        "```console,ignore takes an hour\n$ x=3\n```\n\n"
        "````markdown\n```console\n$ x=4\n```\n````\n\n"
        "```sh\n$ x=5\n```\n\n"
        "~~~ console\n$ echo $x\n1\n~~~\n"
    )

    assert told(file, tmp_path / "work") == []
    assert [block.skipped for block in transcript.parse(file.read_text())] == [
        None,
        "needs the network",
        "takes an hour",
        None,
    ]


def test_block_that_is_a_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / "story.md"
    file.write_text(
        "In `a.sh`:\n\n<!-- transcript: file a.sh -->\n```sh\necho '$HOME'\n\n$ x\n```\n\n"
        "```console\n$ cat a.sh\necho '$HOME'\n\n$ x\n```\n"
    )
    last = tmp_path / "last.md"
    last.write_text(file.read_text().replace("\n$ x\n", "\n"))

    assert "a.sh" in "\n".join(told(file, tmp_path / "first"))
    assert told(last, tmp_path / "second") == []


@pytest.mark.parametrize(
    ("markdown", "complaint"),
    [
        ("words\n", "no console block"),
        ("```console\n$ true\n", "line 1: the block is never closed"),
        ("\n```console\n```\n", "line 2: a console block needs"),
        ("```console\nhello\n$ true\n```\n", "line 2: output before the first command"),
        ("```console,ignore\n$ true\n```\n", "line 1: a block that is not run has to say why"),
        ("<!-- transcript: skip -->\n```console\n$ true\n```\n", "line 2: a block that is not run"),
    ],
)
def test_block_that_cannot_be_run_is_reported(
    markdown: str, complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "story.md"
    file.write_text(markdown)

    assert complaint in "\n".join(told(file, tmp_path / "work"))


def test_transcript_of_which_nothing_is_run_counts_as_skipped(tmp_path: Path) -> None:
    file = tmp_path / "story.md"
    file.write_text("```console,ignore for show\n$ true\n```\n")

    with pytest.raises(pytest.skip.Exception, match="line 1: for show"):
        told(file, tmp_path / "work")


def test_readme_finds_the_workflows_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "one.yaml").touch()

    assert wrong_with(tmp_path, "$ ls workflows", "one.yaml") == ""


LINES = st.lists(st.sampled_from(["a", "b", "ab", "...", "[..]", "a[..]"]), max_size=6)


@given(expected=LINES, actual=st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=6))
def test_retelling_equals_the_expected_exactly_when_it_matches(
    expected: list[str], actual: list[str]
) -> None:
    parts = (
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\[\.\.\]", ".*") + r"\n"
        for line in expected
    )
    matches = re.fullmatch("".join(parts), "".join(f"{line}\n" for line in actual)) is not None

    assert (transcript.in_words_of(expected, actual) == expected) == matches


@given(LINES)
def test_retelling_without_wildcards_is_what_was_said(actual: list[str]) -> None:
    assert transcript.in_words_of([], actual) == actual
    assert transcript.in_words_of(["q"], actual) == actual
