"""The file in which an agent may leave its meta (``outputFile`` of its role).

It is removed before the agent starts, so what is there later was written by this try.
"""

from typing import Any, NamedTuple

from uwf_git.agents.command_line import Protocol
from uwf_git.agents.files import BadFileBelow, read_below, remove_below
from uwf_git.agents.reply import AgentReply, BadJson, BadReply, parse_reply, parse_strict_json
from uwf_git.commands.agent_run.mask import Secrets
from uwf_git.commands.turn.check_meta import find_reply_problem
from uwf_git.commands.turn.role_files import find_output_path
from uwf_git.commands.turn.turn import Turn
from uwf_git.engine.masking import mask_bytes
from uwf_git.errors import AgentFailed
from uwf_git.store.threads.definitions import get_schema

MAX_BYTES = 1024 * 1024

RUNG = "file"
"""How the meta of such a reply was found."""

FILE = "output-file"
"""The kind of a failed attempt whose agent left something else there, and no fit answer."""


class OutputFileUnusable(AgentFailed):
    """The agent could not leave its meta in the file that its role names."""

    code = "output-file-unusable"

    def __init__(self, error: BadFileBelow) -> None:
        super().__init__(
            f"its outputFile {error.message}",
            hint="an outputFile is a path below the work directory; what is there is removed",
        )


class Report(NamedTuple):
    """What an agent has left in its output file."""

    path: str
    meta: Any
    problem: str | None = None
    """Why that is not its meta; None: it fits."""

    @property
    def message(self) -> str:
        """What is wrong, in words."""
        return f"its outputFile {self.path}: {self.problem}"


def prepare_output_file(turn: Turn) -> None:
    """Remove the output file of an earlier try, and remember the path for this one.

    Raises:
        OutputFileUnusable: it is not below the work directory, or cannot be removed.
    """
    if turn.asked.output_file is None:
        return
    try:
        path = find_output_path(turn.snapshot, turn.present, turn.place, turn.asked)
        if path is not None:
            remove_below(turn.workdir, path)
            turn.run_dir.write_output_file(path)
    except BadFileBelow as error:
        raise OutputFileUnusable(error) from error


def find_report(turn: Turn, secrets: Secrets) -> Report | None:
    """Return what the agent of *turn* has left in its output file; None if there is no such file.

    It may be asked while the agent is at work. *secrets* are masked in it.
    """
    path = turn.run_dir.read_output_file()
    if not path:
        return None
    try:
        content = read_below(turn.workdir, path, most_bytes=MAX_BYTES)
        if content is None:
            return None
        content = mask_bytes(content, secrets.find_in(content))
        meta = parse_strict_json(content.decode("utf-8-sig").strip())
    except BadFileBelow as error:
        return Report(path, None, error.problem)
    except UnicodeDecodeError:
        return Report(path, None, "is not UTF-8")
    except BadJson as error:
        return Report(path, None, f"is {error.message}")
    return Report(path, meta, find_meta_problem(turn, meta))


def find_meta_problem(turn: Turn, meta: Any) -> str | None:
    """Return why *meta* does not fit the role of *turn*; None if it does."""
    schema = get_schema(turn.snapshot, turn.asked.output_schema)
    return find_reply_problem(schema, {"meta": meta})


def read_reply(report: Report, stdout: bytes, protocol: Protocol) -> AgentReply:
    """Return the reply of an agent whose *report* fits; what it printed is the text."""
    try:
        reply = parse_reply(stdout, protocol=protocol, is_free=True)
    except BadReply:
        reply = AgentReply({}, stdout.decode(errors="replace"), "text")
    return reply._replace(meta=report.meta, rung=RUNG)
