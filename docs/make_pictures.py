"""Make the pictures of README.md anew, in docs/pictures/: a run, and the page of `uwf ui`.

    .venv/bin/python docs/make_pictures.py [FOLDER]

The page needs the extra `[ui]`, Playwright and a Chromium; tests/browser/install.sh gets the last
two. Without them the page is left as it is, and the script says so. All threads are made by
`uwf-mock` in a temporary store.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
sys.path.append(str(_HERE.parent / "tests"))

from browser.chromium import NoBrowser, open_chromium  # noqa: E402 - the path has to come first

_SCRIPTS = Path(sys.executable).parent
_VIEW = {"width": 1280, "height": 650}

_FIRST = """# Version 2 is here

Threads can be forked at **any** step. Two teams can compare their ways with one command.
"""
_SECOND = """# Version 2: try both ways

Fork a thread at *any* step, and compare the two ways with `uwf thread diff`. Nothing is copied.
"""
_FINDING = {"file": "auth/ldap.py", "line": 41, "problem": "group names are not escaped"}

# What uwf-mock plays: for each role the list of its turns; a turn may have several attempts.
SCRIPT: Mapping[str, Any] = {
    "planner": [{"meta": {"summary": "Escape what RFC 4515 names", "steps": []}}],
    "developer": [
        [
            {"exit": 1, "stderr": "the model is overloaded"},
            {"meta": {"summary": "User names are escaped", "filesChanged": ["auth/ldap.py"]}},
        ],
        {"meta": {"summary": "Group names too", "filesChanged": ["auth/ldap.py"]}},
    ],
    "reviewer": [
        {"meta": {"approved": False, "summary": "One more place", "findings": [_FINDING]}},
        {"meta": {"approved": True, "summary": "Right, and tested", "findings": []}},
    ],
    "author": [
        {"meta": {}, "content": _FIRST, "delay": 0.6},
        {"meta": {}, "content": _SECOND, "delay": 0.9},
    ],
}
_REMARKS = {"approved": False, "points": ["say how two ways are compared"]}


class Demo:
    """A store with a few threads, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Create the store and a project in *folder*."""
        self.project = folder / "shop"
        self._environ = {
            "PATH": os.pathsep.join([str(_SCRIPTS), os.environ["PATH"]]),
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "UWF_REPO": str(folder / "store.git"),
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.com",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.com",
        }
        self.project.mkdir()
        (self.project / "script.yaml").write_text(json.dumps(SCRIPT), encoding="utf-8")
        self.uwf("init", self._environ["UWF_REPO"])

    def uwf(self, *words: str) -> Any:
        """Run a command of uwf, and return its document; a failed agent is no error here."""
        ran = subprocess.run(
            [_SCRIPTS / "uwf", *words],
            cwd=self.project,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode not in (0, 3):
            raise SystemExit(f"uwf {' '.join(words)}: {ran.stderr}")
        return json.loads(ran.stdout) if ran.stdout else None

    def run(self, workflow: str, prompt: str, *words: str, retries: int = 0) -> str:
        """Run a workflow that ships, and return its thread."""
        agent = json.dumps({"command": "uwf-mock script.yaml", "retries": retries, "backoff": 0})
        thread: str = self.uwf("run", workflow, "-p", prompt, "--agent", agent, *words)["thread"]
        return thread

    @contextmanager
    def page(self) -> Iterator[str]:
        """Serve the page of `uwf ui`, and yield its address."""
        server = subprocess.Popen(
            [_SCRIPTS / "uwf", "ui", "--no-open"],
            cwd=self.project,
            env={**self._environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield _address(server)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(10)


def _address(server: "subprocess.Popen[str]") -> str:
    said = []
    for line in server.stdout or ():
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+/#[\w-]+", line):
            return found[0]
    raise SystemExit(f"uwf ui printed no address:\n{''.join(said)}")


def draw_run(demo: Demo, into: Path) -> None:
    """Draw a run with an attempt that failed and a review that sent the work back."""
    thread = demo.run("develop", "Escape user names in LDAP filters", retries=1)
    demo.uwf("thread", "graph", thread, "--as", "svg", "-o", str(into / "run.svg"))


def photograph_page(demo: Demo, into: Path, chromium: Any) -> None:
    """Photograph the page of a thread that waits for a person, light and dark."""
    task = "A press release about version 2"
    thread = demo.run("review-loop", task, "--agent", "reviewer=human")
    demo.uwf("thread", "answer", thread, "--meta", json.dumps(_REMARKS))
    demo.uwf("thread", "run", thread)
    with demo.page() as address:
        for scheme in ("light", "dark"):
            context = chromium.new_context(viewport=_VIEW, color_scheme=scheme)
            shown = context.new_page()
            shown.goto(address)
            shown.get_by_text(task).first.wait_for()
            shown.goto(f"{address.partition('#')[0]}#/t/{thread}")
            shown.locator("svg.uwf-picture").first.wait_for()
            shown.get_by_text("Timeline").first.wait_for()
            shown.screenshot(path=into / f"page-{scheme}.png")
            context.close()


def main(words: Sequence[str]) -> int:
    """Make the pictures, in the folder that is named or beside this file."""
    into = Path(words[0]) if words else _HERE / "pictures"
    into.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        demo = Demo(folder)
        draw_run(demo, into)
        home = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            chromium = stack.enter_context(open_chromium(home))
        except NoBrowser as error:
            print(f"the page is left as it is: {error}", file=sys.stderr)
            return 1
        photograph_page(demo, into, chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
