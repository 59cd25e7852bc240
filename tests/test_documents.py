"""README.md and docs/ are true: links lead somewhere, commands exist, the reference is the code's.

What their console blocks show is run by test_transcripts.py and test_manual.py.
"""

from pathlib import Path

import documents
import man_pages
import pytest
import reference

ROOT = Path(__file__).parent.parent.resolve()
REFERENCE = ROOT / "docs" / "reference.md"
MAN = ROOT / "docs" / "man"
WRITTEN = {
    REFERENCE: reference.reference,
    ROOT / "docs" / "reference-agents.md": reference.agents_reference,
    ROOT / "docs" / "reference-errors.md": reference.errors_reference,
}

# Those that tell a user what to type; the others also name what was or what is stored.
_MANUAL = ("README.md", "docs/", "hooks/")


def pages() -> list[Path]:
    """List the pages of the checkout that people read."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *(ROOT / "hooks").glob("*.md")]
    found += [*(ROOT / "uwf_git").glob("**/*.md"), *(ROOT / "tests").glob("**/README.md")]
    return sorted(set(found))


NAMES = [path.relative_to(ROOT).as_posix() for path in pages()]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_a_file_and_a_heading(name: str) -> None:
    assert list(documents.dead_links(ROOT, ROOT / name)) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(_MANUAL)])
def test_commands_that_a_page_names_exist(name: str) -> None:
    assert list(documents.unknown_commands(ROOT / name)) == []


def test_every_file_of_docs_is_reached_from_the_readme() -> None:
    reached = documents.reached_from(ROOT / "README.md")
    files = {path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".svg", ".png")}

    assert sorted(files - reached) == []
    assert ROOT / "README.md" in reached


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_reference_is_that_of_the_code(page: Path, request: pytest.FixtureRequest) -> None:
    written = WRITTEN[page]()
    if request.config.getoption("--update-golden"):
        page.write_text(written, encoding="utf-8")

    assert page.read_text(encoding="utf-8") == written, "pytest --update-golden writes it"


def test_man_pages_are_those_of_the_code(request: pytest.FixtureRequest) -> None:
    written = man_pages.man_pages()
    if request.config.getoption("--update-golden"):
        for old in MAN.glob("*.1"):
            old.unlink()
        for name, text in written.items():
            (MAN / name).write_text(text, encoding="utf-8")

    there = {path.name: path.read_text(encoding="utf-8") for path in MAN.glob("*.1")}
    assert there == written, "pytest --update-golden writes them"


def test_reference_has_every_command_and_nothing_hidden() -> None:
    anchors = documents.read_page(REFERENCE).anchors

    assert {"uwf-thread-step", "json-cas-put", "shared-options"} <= anchors
    assert not {"uwf-hook", "uwf-workflow-judge"} & anchors


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](b.md)", "a.md: there is no b.md"),
        ("![a](b.svg)", "a.md: there is no b.svg"),
        ('<img src="b.png">', "a.md: there is no b.png"),
        ("# A b\n\n[a](#a-c)", "a.md: there is no heading #a-c"),
        ("[a](c.md#there)", "a.md: there is no heading c.md#there"),
        ("[a](../outside.md)", "a.md: there is no ../outside.md"),
    ],
)
def test_dead_link_is_found(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "c.md").write_text("# Here\n")
    page = tmp_path / "a.md"
    page.write_text(text)

    assert list(documents.dead_links(tmp_path, page)) == [complaint]


@pytest.mark.parametrize(
    "text",
    [
        "# What `uwf run` does, and why\n\n[a](#what-uwf-run-does-and-why)",
        "# A\n\n# A\n\n[a](#a-1)",
        "[a](c.md) [b](c.md#here) [c](https://example.com/x)",
        "```\n[a](b.md)\n```",
    ],
)
def test_live_link_is_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.md").write_text("# Here\n")
    page = tmp_path / "a.md"
    page.write_text(text)

    assert list(documents.dead_links(tmp_path, page)) == []


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("uwf thread shwo ID", "no command shwo"),
        ("uwf thread show --whole", "no option --whole"),
        ("uwf --repo x.git plan rnu", "no command rnu"),
        ("json-cas --repo x.git gte 4", "no command gte"),
    ],
)
def test_unknown_command_is_found(code: str, complaint: str, tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(f"`{code}`")

    assert list(documents.unknown_commands(page)) == [f"a.md: {complaint}: {code}"]


@pytest.mark.parametrize(
    "code",
    [
        "uwf",
        "uwf thread",
        "uwf COMMAND --help",
        "uwf --repo x.git thread show @ --full | grep x --no",
        "uwf run ./f.yaml --agent 'uwf-cli --any' --max-steps=3",
        "cd x && uwf ps",
        "the store uwf-x of a uwf",
        "claude mcp add uwf -- uwf --repo ~/store.git mcp",
    ],
)
def test_known_command_is_left_alone(code: str, tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(f"`{code}`")

    assert list(documents.unknown_commands(page)) == []
