"""uwf-check: is a report complete, are its claims true, can the plan files be carried out.

The truth is on the disk and in git. The last line of a failed check is its reason, for the next
prompt.
"""

import contextlib
import functools
import itertools
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.agentkit.running import make_main, run_as_agent
from uwf_git.agentkit.turn import AgentResult, load_context, parse_arguments
from uwf_git.agents.files import read_json_object
from uwf_git.debug_log import debug
from uwf_git.engine.turn_context import AgentContext
from uwf_git.errors import AgentFailed, BadUsage, UwfError
from uwf_git.model.text import one_line
from uwf_git.plan import project_files
from uwf_git.plan.phases import list_texts
from uwf_git.store.durable import find_user_file
from uwf_git.store.git import program
from uwf_git.store.threads.local_files import SETTINGS

_HELP = """\
Usage: uwf-check completed
       uwf-check files [--since MS]
       uwf-check plans [--dir DIR] [--list [THREAD-ID]]

Check the answer of an agent, in its work directory. $UWF_REPLY names a file with the
answer: {"role", "meta", "content"}. The last line of a failed check says why.

completed  fails unless the meta has completed: true; it names the meta's issues
files      fails if the meta's files_created or files_modified names a file that was
           not created, changed or deleted since this plan began. The disk and git
           are asked: copies, moves, commits, deletions and ignored files count. A plan
           begins where the step before its first one ends, or at MS (since 1970)
plans      fails if there is no plan file (NNN-name.md, with three digits or more), or
           if one is empty, is not UTF-8, or has the number of another; needs no answer.
           DIR is docs/plans, or the planDir of the thread's state

`plans --list` is an agent: its meta is {"plans": [{"file", "number", "name"}]}, and
its text is that of all plans.

Example, by hand: uwf-check plans --dir docs/plans

EXIT STATUS: 0 the check passes; 1 it fails; 2 usage, or there is no answer to check.
"""

_FAILED, _USAGE = 1, 2
_MOST_PROBLEMS = 10
_MOST_ENTRIES = 100_000

_SLACK_S = 2
"""By how much the clocks of file system, git and engine may differ."""

_DIFF = (
    "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
    "--ignore-submodules=dirty", "--relative",
)  # fmt: skip


class CheckArguments(NamedTuple):
    check: str
    plan_dir: str | None = None
    since_ms: int | None = None
    lists: bool = False
    thread: str | None = None


def _play(argv: list[str]) -> int:
    try:
        arguments = parse_check_arguments(argv)
        if arguments.lists:
            return run_as_agent(lambda: list_plans(arguments, os.environ))
        problems, notes = _CHECKS[arguments.check](arguments, os.environ)
    except UwfError as error:
        hint = f"hint: {error.hint}\n" if error.hint else ""
        _write(sys.stderr, f"{hint}error: {error.message}\n")
        return _USAGE
    # All on the last line: that one is the reason in the next prompt.
    told = _join(problems)
    _write(sys.stdout, "".join(f"{line}\n" for line in (*notes, told) if line))
    return _FAILED if problems else 0


main = make_main(_HELP, _play)


def parse_check_arguments(argv: Sequence[str]) -> CheckArguments:
    words = list(argv)
    arguments = CheckArguments(words.pop(0) if words else "")
    while words and words[0] in _OPTIONS.get(arguments.check, ()):
        arguments = _take_option(arguments, words)
    if words and arguments.lists:
        thread = parse_arguments(words)
        if not thread.own:
            return arguments._replace(thread=thread.thread_id)
    if words or arguments.check not in _CHECKS:
        raise BadUsage(
            f"uwf-check takes completed, files or plans, not {' '.join(argv)!r:.60}",
            hint="see uwf-check --help",
        )
    return arguments


def _take_option(arguments: CheckArguments, words: list[str]) -> CheckArguments:
    option = words.pop(0)
    if option == "--list":
        return arguments._replace(lists=True)
    value = words.pop(0) if words else ""
    if option == "--dir" and value:
        return arguments._replace(plan_dir=value)
    if option == "--since" and value.isascii() and value.isdigit():
        return arguments._replace(since_ms=int(value))
    raise BadUsage(
        f"{option} takes {'a directory' if option == '--dir' else 'milliseconds since 1970'}",
        hint="see uwf-check --help",
    )


def list_plans(arguments: CheckArguments, environ: Mapping[str, str]) -> AgentResult:
    found = _find_plans(arguments, environ)
    problems = project_files.list_plan_problems(os.getcwd(), found)
    if problems:
        raise AgentFailed(_join(problems))
    read = functools.partial(project_files.read_plan, os.getcwd())
    texts = [f"# {plan.file}\n\n{read(plan).strip()}\n" for plan in found.plans]
    return AgentResult({"plans": [plan._asdict() for plan in found.plans]}, "\n".join(texts))


def _join(problems: Sequence[str]) -> str:
    more = len(problems) - _MOST_PROBLEMS
    shown = [*problems[:_MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]
    return "; ".join(shown)


def find_begin_ms(context: AgentContext, role: str) -> int:
    """Return when the turn's first try of those refused began at the earliest, in ms.

    That is the end of the step before it. Earlier tries are the steps of the same role, and the
    verdicts (``verified: false``) that refused them.
    """
    for step in reversed(context.steps):
        is_verdict = isinstance(step.meta, dict) and step.meta.get("verified") is False
        if step.role != role and not is_verdict:
            return step.timestamp
    return context.start.timestamp


_Changed = Callable[[str], frozenset[str]]

Verdict = tuple[list[str], list[str]]
"""What is wrong, and notes."""


def _check_completed(_: CheckArguments, environ: Mapping[str, str]) -> Verdict:
    return find_incompleteness(_read_reply(environ).get("meta")), []


def _check_files(arguments: CheckArguments, environ: Mapping[str, str]) -> Verdict:
    reply = _read_reply(environ)
    claims = list_claims(reply.get("meta"))
    if not claims:
        return [], ["the report names no files"]
    since_ms = arguments.since_ms
    if since_ms is None:
        role = str(reply.get("role") or environ.get("UWF_ROLE") or "")
        since_ms = find_begin_ms(_load(environ, environ.get("UWF_THREAD_ID"), role), role)
    return list_false_claims(claims, os.getcwd(), since_ms, dict(environ)), []


def _check_plans(arguments: CheckArguments, environ: Mapping[str, str]) -> Verdict:
    found = _find_plans(arguments, environ)
    problems = project_files.list_plan_problems(os.getcwd(), found)
    gaps = project_files.describe_gaps(found.plans)
    return problems, [f"there is no plan {gaps}"] if gaps else []


def _find_plans(arguments: CheckArguments, environ: Mapping[str, str]) -> project_files.PlanSet:
    named: Any = arguments.plan_dir
    thread = arguments.thread or environ.get("UWF_THREAD_ID")
    if not named and thread and environ.get("UWF_REPO"):
        named = _load(environ, thread, environ.get("UWF_ROLE")).state.get("planDir")
    folder = named if isinstance(named, str) and named else project_files.PLAN_DIR
    return project_files.find_plans(os.getcwd(), folder)


def _load(environ: Mapping[str, str], thread: str | None, role: str | None) -> AgentContext:
    if not thread:
        raise BadUsage(
            "UWF_THREAD_ID is not set, so it is not known when the plan began",
            hint="by hand: uwf-check files --since MILLISECONDS",
        )
    return load_context(environ, ["-t", thread, *(["-r", role] if role else [])])


def _read_reply(environ: Mapping[str, str]) -> dict[str, Any]:
    path = environ.get("UWF_REPLY")
    if not path:
        raise BadUsage(
            "UWF_REPLY is not set, so there is no answer to check",
            hint="by hand, put the path of a file with {role, meta, content} in it",
        )
    name = f"the answer in {path}"
    return read_json_object(path, most_bytes=64 * 1024 * 1024, name=name, error=BadUsage)


def _write(stream: Any, text: str) -> None:
    stream.buffer.write(text.encode("utf-8", "backslashreplace"))
    stream.flush()


# Whether a report is complete, and the files that it names are really changed. A claim is false
# only if neither the disk nor git bears it out. Copies and moves keep the time of the content but
# not that of the inode (ctime), so `cp -p`, `mv` and `tar x` are seen.


def find_incompleteness(meta: Any) -> list[str]:
    """Return why the report *meta* tells of no finished job, on one line; [] if it does."""
    if isinstance(meta, dict) and meta.get("completed") is True:
        return []
    issues = [text for text in list_texts(meta, "issues") if text.strip()]
    return [one_line(f"not completed: {'; '.join(issues) or 'the report names no issues'}")]


def list_claims(meta: Any) -> list[tuple[str, str]]:
    """List the files that the report *meta* names, each after the field that names it."""
    fields = ("files_created", "files_modified")
    return [(field, path) for field in fields for path in list_texts(meta, field)]


def list_false_claims(
    claims: Sequence[tuple[str, str]], workdir: str, since_ms: int, environ: Mapping[str, str]
) -> list[str]:
    """List, a line each, the claims that neither the disk nor git bears out; [] if all are true.

    *since_ms* is when the first try of this plan began; *environ* is for git.
    """
    since_s = since_ms // 1000 - _SLACK_S

    @functools.cache
    def changed(folder: str) -> frozenset[str]:
        return list_changed(folder, since_s, environ)

    return [
        one_line(f"{field} names {path!r}, {problem}")
        for field, path in claims
        if (problem := _find_problem(workdir, path, since_s, changed)) is not None
    ]


def _find_problem(workdir: str, path: str, since_s: int, changed: _Changed) -> str | None:
    inside = project_files.resolve_inside(workdir, path)
    if inside is None:
        return "which is not below the work directory"
    found = project_files.find_spelled(workdir, inside)
    if found is not None and _is_changed_since(os.path.join(workdir, found), since_s):
        return None
    if _is_named(workdir, found or inside, changed):
        return None
    if found is None:
        return "which does not exist, and git knows of no deletion"
    return "which has not changed since this plan began"


def _is_changed_since(path: str, since_s: int) -> bool:
    """Check the times of *path*, of what a link leads to, and of all below a folder."""
    below = (
        os.path.join(folder, name)
        for folder, folders, files in os.walk(path)
        for name in (*folders, *files)
    )
    for each in itertools.chain([path], itertools.islice(below, _MOST_ENTRIES)):
        for look in (os.lstat, os.stat):
            with contextlib.suppress(OSError):
                times = look(each)
                if max(times.st_mtime, times.st_ctime) >= since_s:
                    return True
    return False


def _is_named(workdir: str, path: str, changed: _Changed) -> bool:
    """Check whether git names *path*, or anything below it.

    Asked in the nearest folder that exists, which may be in a repository of its own.
    """
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(os.path.join(workdir, folder)):
        folder = os.path.dirname(folder)
    rest = os.path.relpath(path, folder or os.curdir).replace(os.sep, "/")
    wanted = unicodedata.normalize("NFC", rest)
    names = changed(os.path.join(workdir, folder))
    if wanted == ".":
        return bool(names)
    return any(name == wanted or name.startswith(f"{wanted}/") for name in names)


# What git names changed or deleted since a time: in commits, the index and the work tree.


def list_changed(folder: str, since_s: int, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the paths below *folder*, in NFC, that git names changed since *since_s*.

    They differ from the newest commit of HEAD before that second; without such a commit everything
    in the index does. Empty if git is missing, or *folder* is in no work tree.
    """
    try:
        names = _list_changed(folder, since_s, environ)
    except (UwfError, OSError) as error:
        debug("6W3N0QXJ", "git names no changes", problem=str(error))
        return frozenset()
    return frozenset(unicodedata.normalize("NFC", name) for name in names)


def _list_changed(folder: str, since_s: int, environ: Mapping[str, str]) -> list[str]:
    store, thread = environ.get("UWF_REPO"), environ.get("UWF_THREAD_ID")
    kept = program.Kept()
    if store and thread:
        kept = program.read_settings(find_user_file(store, environ, os.path.join(SETTINGS, thread)))
    place = program.find_place(environ, folder, kept)
    if isinstance(place, str):
        raise program.ProgramFailed("git", f"finds no work tree: {place}")

    def run(*words: str) -> program.Ran:
        return program.run_fenced(environ, place, *words, cwd=folder, timeout_s=60.0)

    found = run("rev-list", "-1", f"--before={since_s - 1}", "HEAD")
    then = found.stdout.strip() if found.status == 0 else b""
    if not then:
        then = run("hash-object", "-t", "tree", "--stdin").stdout.strip()
    ran = run(*_DIFF, then.decode(), "--", ".")
    if ran.status != 0:
        raise program.ProgramFailed("git", f"diff failed: {ran.last_line}")
    names = [os.fsdecode(name) for name in ran.stdout.split(b"\0") if name]
    return [*names, *program.list_changed_inside(environ, place, cwd=folder)]


_CHECKS = {"completed": _check_completed, "files": _check_files, "plans": _check_plans}
_OPTIONS = {"files": ("--since",), "plans": ("--dir", "--list")}
