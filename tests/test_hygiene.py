"""The house is in order: every rule of hygiene.py, on this checkout."""

import gc
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import hygiene
import pytest

ROOT = Path(__file__).parent.parent

LONG = "def f() -> None:\n" + "    x = 1\n" * 70
FIELDS = "class A:\n    '''A.'''\n"

BROKEN = {
    hygiene.modules_are_short: [("uwf_git/a.py", "x = 1\n" * 701, "uwf_git/a.py: 701 lines")],
    hygiene.functions_are_short: [
        ("uwf_git/a.py", LONG, "uwf_git/a.py:1: f has 71 lines"),
        ("tests/test_a.py", "async " + LONG, "f has 71 lines"),
    ],
    hygiene.modules_have_headers: [("uwf_git/x/__init__.py", "", "uwf_git/x/__init__.py:1: no")],
    hygiene.public_names_have_docstrings: [
        ("uwf_git/library/a.py", "def f(): ...", "1: f has no"),
        ("uwf_git/agentkit/a.py", "class A: ...", "1: A has no"),
        ("uwf_git/library/a.py", FIELDS + "    def f(self): ...", "a.py:3: f has no"),
    ],
    hygiene.names_say_something: [
        ("uwf_git/git_utils.py", "", "git_utils' says nothing: utils"),
        ("uwf_git/core/a.py", "", "says nothing: core"),
        ("uwf_git/a.py", "class HTTPHandler: ...", "nothing: handler"),
        ("tests/helpers.py", "", "says nothing: helpers"),
    ],
    hygiene.each_dependency_has_one_door: [
        ("uwf_git/a.py", "import rich.text", "a.py:1: imports"),
        (
            "uwf_git/engine/a.py",
            "def f():\n    from dulwich.repo import Repo",
            "uwf_git/engine/a.py:2: imports dulwich, whose door is uwf_git/store/",
        ),
        (
            "uwf_git/store/a.py",
            "import subprocess",
            "imports subprocess, whose door is uwf_git/agents/ or uwf_git/agentkit/adapters/ or ",
        ),
        (
            "uwf_git/model/second.py",
            "import referencing",
            "jsonschema has several doors: uwf_git/model/doors.py, uwf_git/model/second.py",
        ),
    ],
    hygiene.only_the_shell_prints: [("uwf_git/store/a.py", "print(1)", "store/a.py:1: print")],
    hygiene.only_the_shell_reads_the_environment: [
        (
            "uwf_git/agents/a.py",
            "import os\nx = os.environ['X']",
            "uwf_git/agents/a.py:2: os.environ",
        ),
        ("uwf_git/model/a.py", "from os import getenv", "uwf_git/model/a.py:1: os.getenv"),
    ],
    hygiene.tags_lead_to_their_call: [
        ("uwf_git/a.py", "debug('4KNMR2PO', 'x')", "is no tag: 8"),
        ("uwf_git/a.py", "debug('4knmr2px', 'x')", "is no tag: 8"),
        ("uwf_git/a.py", "debug(TAG, 'x')", "a.py:1: '' is no tag"),
        ("uwf_git/a.py", "debug('4KNMR2PX', x)", "in words of its"),
        ("uwf_git/a.py", "debug('4KNMR2PX')", "in words of its own"),
        (
            "uwf_git/a.py",
            "debug('4KNMR2PX', 'x')\nf(debug('4KNMR2PX', 'y'))",
            "a.py:2: '4KNMR2PX' is said at uwf_git/a.py:1 as well",
        ),
        (
            "uwf_git/a.py",
            "debug('4KNMR2PX', 'x')\ndebug('0KNMR2PX', 'x')",
            "a.py:2: 'x' is said at",
        ),
    ],
    hygiene.error_codes_are_unique: [
        (
            "uwf_git/a.py",
            "class A:\n    code = 'lost'\nclass B:\n    code: str = 'lost'\n",
            "uwf_git/a.py:3: 'lost' is the code of A (uwf_git/a.py) too",
        )
    ],
    hygiene.suppressions_give_code_and_reason: [
        ("uwf_git/a.py", "x  # noqa", "no code: # noqa"),
        ("uwf_git/a.py", "x  # noqa: E501", "no reason"),
        ("tests/a.py", "x  # type: ignore[misc]", "no reas"),
        ("tests/a.py", "x  # type: ignore # why", "no code"),
        ("tests/a.py", "x  # pragma: no cover", "no reason"),
        ("tests/a.py", "x  # type: ignore[misc]  # noqa: E501", "tests/a.py:1: no reason"),
    ],
    hygiene.rooms_have_tests: [
        ("uwf_git/model/a.py", "", "uwf_git/model/a.py: no test in tests/model imports it")
    ],
    hygiene.no_path_of_a_machine: [
        ("docs/a.md", "cd " + "/" + "work/x", "docs/a.md:1: /"),
        ("a.cfg", "\nhome='" + "/" + "root/'", "a.cfg:2: /"),
    ],
    hygiene.tests_do_not_sleep: [
        ("tests/a.py", "time.sleep(0.06)", "a.py:1: time.sleep(0.06)"),
        ("tests/x/a.py", "sleep(pause)", "tests/x/a.py:1: sleep(pause)"),
    ],
    hygiene.readme_holds_the_commands: [
        (".ci/run", "pytest", ".ci/run: does not hold: .venv"),
        ("README.md", hygiene.RUN_COMMAND, "README.md: does not"),
    ],
    hygiene.documents_name_files_that_exist: [
        (
            "ARCHITECTURE.md",
            "See `model/doors.py`, `model/` and `model/windows.py`.",
            "ARCHITECTURE.md: there is no model/windows.py",
        )
    ],
    hygiene.modules_name_modules_that_exist: [("uwf_git/a.py", "# In b.py.", "there is no b.py")],
    hygiene.ruff_finds_nothing: [("tests/a.py", "prnt(1)\n", "tests/a.py:1:1: F821")],
    hygiene.code_is_formatted: [("tests/a.py", "x=1\n", "tests/a.py")],
    hygiene.imports_point_one_way: [
        ("uwf_git/model/a.py", "import uwf_git.cli", "model.a -> uwf_")
    ],
}

KEPT = [
    ("uwf_git/a.py", "'''A.'''\nclass _A:\n    code = 'lost'\nclass _B:\n    code = 'gone'\n"),
    ("uwf_git/model/a.py", "'''A.'''\ndef f() -> None:\n    '''F.'''\n"),
    ("uwf_git/model/a.py", "'''A.'''\nclass _A:\n    def f(self): ...\n"),
    ("uwf_git/model/a.py", FIELDS + "    @overload\n    def f(self): ...\n"),
    ("uwf_git/model/a.py", FIELDS + "    @x.setter\n    def x(self): ...\n"),
    ("uwf_git/model/metadata.py", "class _Database: ...\n"),
    ("uwf_git/cli/a.py", "import click\nimport os\nprint(os.environ)\n"),
    ("uwf_git/library/a.py", "import os\nx = os.environ\n"),
    ("uwf_git/agents/a.py", "import subprocess\n"),
    ("uwf_git/agents/a.py", "debug('4KNMR2PX', 'x')\ndebug('0KNMR2PX', 'y', a=b)\n"),
    ("uwf_git/store/a.py", "from dulwich.repo import Repo\nfrom . import b\n"),
    ("uwf_git/model/a.py", "x  # noqa: E501 - the address of the specification\n"),
    (
        "uwf_git/model/doors.py",
        (
            "import cbor2, distributed, jsonschema, starlette, ulid, urllib3, uvicorn, wcwidth\n"
            "import xxhash\n"
            "# untyped\n"
            "import yaml  # noqa: E402"
        ),
    ),
    ("uwf_git/model/a.py", "x  # type: ignore[misc]  # noqa: A001 (two things, one cause)\n"),
    ("uwf_git/model/a.py", "x  # pragma: no cover (race)\n"),
    ("uwf_git/model/a.py", "x = '# noqa'\n"),
    ("uwf_git/model/a.py", "# See model/doors.py, test_doors.py. A path: src/main.py\n"),
    ("tests/test_a.py", "time.sleep(0.05)\nsleep(0)\n"),
    ("docs/a.md", "See https://example.com" + "/" + "work/ and $HOME" + "/" + "root/.\n"),
]


@pytest.fixture(scope="module", autouse=True)
def _trees_for_a_while() -> Iterator[None]:
    """Keep the collector off the syntax trees, and the trees off the forks of all later tests."""
    gc.disable()
    yield
    hygiene.forget_trees()
    gc.enable()


@pytest.mark.parametrize(
    "rule", [*hygiene.RULES, *hygiene.SIZE_RULES], ids=lambda rule: rule.__name__
)
def test_rule_is_kept(rule: hygiene.Rule) -> None:
    if complaints := rule(ROOT):
        told = "\n".join(complaints)
        pytest.fail(f"{rule.__doc__}\n\n{told}", pytrace=False)


@pytest.fixture
def house(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a checkout that breaks no rule, with one more file in it."""
    modules = {
        "__init__": "",
        "cli/__init__": "import click",
        "store/__init__": "import dulwich",
        "model/__init__": "",
        "model/doors": "import cbor2, distributed, jsonschema, referencing\n"
        "import starlette, ulid, urllib3, uvicorn, wcwidth, xxhash, yaml",
        "commands/__init__": "",
    }
    for name, source in modules.items():
        path = tmp_path / "uwf_git" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Header."""\n\n{source}'.strip() + "\n")
    for directory in ("tests/model", ".ci"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "tests" / "model" / "test_doors.py").touch()
    (tmp_path / "README.md").write_text(f"{hygiene.RUN_COMMAND}\n{hygiene.TEST_COMMAND}\n")
    (tmp_path / ".ci" / "run").write_text(hygiene.TEST_COMMAND)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.ruff.lint]\nselect = ['F821']\n"
        "[tool.importlinter]\nroot_package = 'uwf_git'\n"
        "[[tool.importlinter.contracts]]\nname = 'Layers'\ntype = 'layers'\n"
        "layers = ['uwf_git.cli', 'uwf_git.model']\n"
    )

    def with_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return tmp_path

    return with_file


@pytest.mark.parametrize(
    ("rule", "name", "text", "complaint"),
    [(rule, *case) for rule, cases in BROKEN.items() for case in cases],
)
def test_rule_sees_what_breaks_it(
    rule: hygiene.Rule, name: str, text: str, complaint: str, house: Callable[[str, str], Path]
) -> None:
    told = rule(house(name, text))

    assert len(told) == 1
    assert complaint in told[0]


@pytest.mark.parametrize(("name", "text"), KEPT)
def test_rules_leave_the_rest_alone(
    name: str, text: str, house: Callable[[str, str], Path]
) -> None:
    root = house(name, text)
    rules = [rule for rule in hygiene.RULES if rule not in hygiene.TOOLS]
    told = [each for rule in rules for each in rule(root)]

    assert [each for each in told if "no header" not in each and "no test in" not in each] == []


def test_house_is_in_order(house: Callable[[str, str], Path]) -> None:
    root = house("tests/test_a.py", "")

    assert [each for rule in hygiene.RULES for each in rule(root)] == []


def test_growth_is_told_and_so_is_a_number_that_is_too_high(
    house: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = house("uwf_git/a.py", "'''A.'''\n\n# one\nx = 1\n" + "y = 1\n" * 300)
    now = int(hygiene.house_does_not_grow(root)[0].split()[1])
    for most, told in ((now, 0), (now + 100, 0), (now - 1, 1), (now + 101, 1)):
        monkeypatch.setitem(hygiene.CODE_LINES, "uwf_git", most)
        assert (
            len([each for each in hygiene.house_does_not_grow(root) if "uwf_git" in each]) == told
        )
    assert hygiene.count_code("'''A.'''\n\n# one\nx = 1\n", "a.py") == 1


def test_dependency_that_nothing_imports_is_told(house: Callable[[str, str], Path]) -> None:
    root = house("uwf_git/cli/__init__.py", "'''No click.'''\n")

    assert hygiene.each_dependency_has_one_door(root) == ["uwf_git: nothing imports click"]


def test_place_of_the_checkout_is_a_path_of_a_machine(house: Callable[[str, str], Path]) -> None:
    root = house("a.txt", "")
    (root / "a.txt").write_text(f"see {root}/README.md")

    assert len(hygiene.no_path_of_a_machine(root)) == 1


def test_ignored_files_may_hold_anything(
    house: Callable[[str, str], Path], git: Callable[..., str]
) -> None:
    root = house("build/a.txt", "/" + "work/x")
    assert len(hygiene.no_path_of_a_machine(root)) == 1
    (root / ".gitignore").write_text("/build/\n")
    git("init", "-q", cwd=root)

    assert hygiene.no_path_of_a_machine(root) == []


def test_ci_runs_what_it_says() -> None:
    script = ROOT / ".ci" / "run"

    assert script.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
