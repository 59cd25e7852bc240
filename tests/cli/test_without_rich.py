"""Every command but two runs without rich and its parser of Markdown, at a terminal too."""

import json
import subprocess
import sys

from cli.program import Uwf, entries

from uwf_git.cli.app.lazy_group import LazyCommand
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.uwf import UWF

# `thread read` renders at a terminal unless it is raw, `thread report` always. DONE has ended,
# OPEN is ready. What is refused, or fails, has loaded as much.
LINES = """\
uwf init
uwf workflow put FILE
uwf workflow show demo
uwf workflow graph demo
uwf workflow list
uwf workflow history demo
uwf workflow rollback demo
uwf workflow validate FILE
uwf workflow draft wish --agent false
uwf workflow judge OPEN
uwf thread start demo -p x --agent AGENT
uwf thread step @
uwf thread run @
uwf thread wait DONE
uwf thread show DONE --full
uwf thread graph DONE
uwf thread list --all
uwf thread read DONE --raw
uwf thread files DONE
uwf thread restore DONE 1
uwf thread take DONE OPEN
uwf thread logs DONE
uwf thread diff DONE OPEN
uwf thread context OPEN
uwf thread answer OPEN
uwf thread pause OPEN
uwf thread resume OPEN
uwf thread retry OPEN
uwf thread patch OPEN {"n":1}
uwf thread amend OPEN --max-steps 9
uwf thread append OPEN {}
uwf thread fork DONE --at 1
uwf thread poke OPEN
uwf thread kill OPEN
uwf thread rm OPEN --yes
uwf run demo -p x --agent AGENT
uwf ps
uwf plan run x --agent AGENT
uwf plan resume
uwf plan status
uwf plan plans
uwf plan clean
uwf plan plugin
uwf events
uwf search x
uwf watch DONE
uwf verify
uwf gc
uwf push
uwf fetch
uwf clone nowhere there
uwf drive
uwf work THREAD --hub nowhere
uwf remote add origin /nowhere.git
uwf remote list
uwf remote repair
uwf remote remove origin
uwf setup
uwf agent list
uwf agent check false
uwf agent trust ./x
uwf agent trusted
uwf agent untrust ./x
uwf mcp
uwf config set retries 2
uwf config get retries
uwf config list
uwf completion bash
uwf hook update
uwf workflow remove demo
json-cas init
json-cas bootstrap
json-cas put Text --text FILE
json-cas get HASH
json-cas cat HASH
json-cas has HASH
json-cas hash Text --text FILE
json-cas refs HASH
json-cas walk HASH
json-cas verify
json-cas schema put FILE
json-cas schema get Text
json-cas schema list
json-cas schema validate HASH
"""

SCRIPT = """
import json, os, sys
from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.session import read_session
from uwf_git.cli.uwf import UWF
programs = {"uwf": UWF, "json-cas": JSON_CAS}
for prog, *words in json.loads(sys.argv[1]):
    session = read_session(os.environ)._replace(
        output_format="text", may_configure_format=False, stdout_is_tty=True, stderr_is_tty=True
    )
    status = run(programs[prog], words, prog=prog, environ=os.environ, session=session)
    loaded = {"rich", "markdown_it"} & set(sys.modules)
    assert status != 70, (prog, words)
    assert not loaded, (prog, words, loaded)
"""


def test_every_command_but_two_runs_without_rich(uwf: Uwf) -> None:
    agent = uwf.agent()
    done, opened = uwf.begun(agent), uwf.begun(agent)
    ended = uwf.json("thread", "run", done)
    given = {
        "FILE": uwf.file(), "AGENT": agent, "DONE": done, "OPEN": opened, "HASH": ended["head"]
    }  # fmt: skip
    lines = [[given.get(word, word) for word in line.split()] for line in LINES.splitlines()]

    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(lines)],
        cwd=uwf.place,
        env={**uwf.session.environ, "UWF_REPO": str(uwf.session.repo)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr[-2000:]


def test_no_command_is_forgotten() -> None:
    paths = {
        path
        for group, name in ((UWF, "uwf"), (JSON_CAS, "json-cas"))
        for path, entry in entries(group, name)
        if isinstance(entry, LazyCommand)
    }
    run = {
        path
        for path in paths
        if any(f"{line} ".startswith(f"{path} ") for line in LINES.splitlines())
    }

    # The page stays until it is ended; the report may have Markdown.
    assert paths - run == {"uwf thread report", "uwf ui"}
