"""Make the pictures of README.md anew, in docs/pictures/: a run, and the page of `uwf ui`.

    .venv/bin/python docs/make_pictures.py [FOLDER]

The page needs the extra `[ui]`, Playwright and a Chromium; tests/browser/install.sh gets the last
two. Without them the page is left as it is, and the script says so. All threads are made by
`uwf-mock` in a temporary store.
"""

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_VIEW = {"width": 1280, "height": 800}

_CHANGE = {
    "summary": "Escape user names before they go into the filter",
    "filesChanged": ["auth/ldap.py"],
}
_CHANGED_AGAIN = {
    "summary": "Escape group names too, with a test",
    "filesChanged": ["auth/ldap.py"],
}
_FINDING = {"file": "auth/ldap.py", "line": 41, "problem": "group names are not escaped"}

SCRIPT: Mapping[str, Any] = {
    "planner": [
        {
            "meta": {
                "summary": "User names go into LDAP filters as they are",
                "steps": [{"title": "Escape them"}],
            },
            "content": "The filter is built in `auth/ldap.py`. Escape what RFC 4515 names.\n",
        }
    ],
    "developer": [
        [{"exit": 1, "stderr": "the model is overloaded"}, {"meta": _CHANGE, "delay": 0.4}],
        {
            "meta": _CHANGED_AGAIN,
            "content": "Both are escaped; three tests are new.\n",
            "delay": 0.6,
        },
    ],
    "reviewer": [
        {
            "meta": {"approved": False, "summary": "One more place", "findings": [_FINDING]},
            "delay": 0.3,
        },
        {"meta": {"approved": True, "summary": "Right, and tested", "findings": []}},
    ],
    "outliner": [{"meta": {"clear": True, "points": ["branches", "rebase"]}, "delay": 600}],
}


class Demo:
    """A store with a few threads, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Create the store and a project in *folder*."""
        self.project = folder / "shop"
        self._environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(folder),
            "UWF_REPO": str(folder / "store.git"),
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.com",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.com",
        }
        self.project.mkdir()
        self._mock = folder / "script.yaml"
        self._mock.write_text(json.dumps(SCRIPT), encoding="utf-8")
        self.uwf("init", self._environ["UWF_REPO"])

    def uwf(self, *words: str) -> Any:
        """Run a command of uwf, and return its document; a failed agent is no error here."""
        ran = subprocess.run(
            [_uwf(), *words],
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
        mock = f"{Path(sys.executable).with_name('uwf-mock')} {self._mock}"
        agent = json.dumps({"command": mock, "retries": retries, "backoff": 0})
        thread: str = self.uwf("run", workflow, "-p", prompt, "--agent", agent, *words)["thread"]
        return thread

    @contextmanager
    def page(self) -> Iterator[str]:
        """Serve the page of `uwf ui`, and yield its address."""
        server = subprocess.Popen(
            [_uwf(), "ui", "--no-open"],
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


def _uwf() -> str:
    return str(Path(sys.executable).with_name("uwf"))


def _address(server: "subprocess.Popen[str]") -> str:
    said = []
    for line in server.stdout or ():
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+/#[\w-]+", line):
            return found[0]
    raise SystemExit(f"uwf ui printed no address:\n{''.join(said)}")


def make_run(demo: Demo, into: Path) -> str:
    """Draw a run with an attempt that failed and a review that sent the work back."""
    prompt = "Escape user names in LDAP filters"
    thread = demo.run("develop", prompt, retries=1)
    demo.uwf("thread", "graph", thread, "--as", "svg", "-o", str(into / "run.svg"))
    return thread


def make_page(demo: Demo, thread: str, into: Path, chromium: Any) -> None:
    """Photograph the page of *thread* beside a few others, light and dark."""
    demo.run(
        "approve",
        "Delete the test accounts of last year",
        "--agent",
        "planner=uwf-shell 'echo 12 accounts'",
    )
    demo.run("review-loop", "A press release about version 2")
    demo.run("pipeline", "A page that explains git rebase", "--background")
    with demo.page() as address:
        for scheme in ("light", "dark"):
            context = chromium.new_context(viewport=_VIEW, color_scheme=scheme)
            shown = context.new_page()
            shown.goto(address)
            shown.goto(f"{address.partition('#')[0]}#/t/{thread}")
            shown.get_by_text("planner").first.wait_for()
            shown.screenshot(path=into / f"page-{scheme}.png")
            context.close()
    demo.uwf("thread", "kill", "@")


@contextmanager
def open_chromium(home: Path) -> Iterator[Any]:
    """Start a Chromium, whose files go below *home*.

    Raises:
        LookupError: there is none, or no Playwright.
    """
    program = os.environ.get("UWF_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), "")
    if not program:
        raise LookupError("no Chromium")
    try:
        playwright: Any = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError as error:
        raise LookupError("no Playwright") from error
    # Chromium as root has no sandbox.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    environ = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(home)}
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=arguments, env=environ)
        yield browser
        browser.close()


def main(words: Sequence[str]) -> int:
    """Make the pictures, in the folder that is named or beside this file."""
    into = Path(words[0]) if words else _HERE / "pictures"
    into.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        demo = Demo(folder)
        thread = make_run(demo, into)
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            chromium = stack.enter_context(open_chromium(home))
        except LookupError as error:
            print(
                f"{error}, so the page is left as it is: tests/browser/install.sh", file=sys.stderr
            )
            return 1
        make_page(demo, thread, into, chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
