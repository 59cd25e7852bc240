"""The files of a project: plan files, paths that others name, files replaced whole.

A plan file is ``NNN-name.md`` in one folder, ordered by number. Source: seed 002.
"""

import errno
import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.errors import BadUsage, name_some
from uwf_git.model.text import one_line

PLAN_DIR = "docs/plans"
"""Where plan files are, from the work directory, unless a setting says otherwise."""

MOST_BYTES = 1024 * 1024
"""The most that a plan file may hold."""

_MOST_READ = 16 * 1024 * 1024
"""No file of ours, and no settings of a tool, come near it."""

_OUR_FOLDERS = (".state", ".plugins")
"""Folders that hold nothing of the project, whoever made them."""

_AT_ONCE: int = getattr(os, "O_NONBLOCK", 0)

_NAME = r"(?s)([0-9]{3,})-(.+)\.md"
_MISNAMED = r"(?is)[0-9].*\.md"


class PlanFile(NamedTuple):
    """A file with the name of a plan; its content may still be wrong."""

    file: str
    """Its path from the work directory, with slashes, as it is on the disk."""

    number: int
    name: str
    """What follows the number, without ``.md``, in NFC."""


class PlanSet(NamedTuple):
    plan_dir: str
    """Its path from the work directory, with slashes."""

    plans: tuple[PlanFile, ...]
    """By number, then by name."""

    others: tuple[str, ...]
    """The names of all else in it, sorted."""


def find_plans(workdir: str, plan_dir: str = PLAN_DIR) -> PlanSet:
    """List the plan files in *plan_dir*; a folder that is not there has none."""
    typed = resolve_inside(workdir, plan_dir)
    inside = typed and (find_spelled(workdir, typed) or typed)
    if inside is None or resolve_inside(workdir, os.path.join(inside, "x")) is None:
        raise BadUsage(
            f"the plan directory {one_line(plan_dir)!r} is not below {one_line(workdir)}",
            code="plan-dir-outside",
            hint=f"name a folder of the project, such as {PLAN_DIR}",
            directory=plan_dir,
        )
    try:
        names = sorted(os.listdir(os.path.join(workdir, inside)))
    except FileNotFoundError:
        names = []
    shown = inside.replace(os.sep, "/")
    plans = [plan for name in names if (plan := _parse_name(shown, name)) is not None]
    known = {os.path.basename(plan.file) for plan in plans}
    return PlanSet(
        shown,
        tuple(sorted(plans, key=lambda plan: (plan.number, plan.file))),
        tuple(name for name in names if name not in known),
    )


def read_plan(workdir: str, plan: PlanFile) -> str:
    """Return the text of a plan file: no BOM, and newlines as line ends."""
    path = os.path.join(workdir, plan.file)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ValueError("is not a regular file")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start:,})") from error
    if not text.strip():
        raise ValueError("is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def list_plan_problems(workdir: str, found: PlanSet) -> list[str]:
    """List, a line each, why the plans cannot be carried out; [] if they can."""
    if not found.plans:
        seen = f"; it has {name_some(found.others, most=3)}" if found.others else ""
        return [one_line(f"{found.plan_dir} has no plan file, named NNN-name.md{seen}")]
    return [
        *list_misnamed(found),
        *_list_shared_numbers(found.plans),
        *_list_unreadable(workdir, found.plans),
    ]


def list_misnamed(found: PlanSet) -> list[str]:
    """List, a line each, the files that are numbered as plans are, but not named so."""
    return [
        one_line(f"{found.plan_dir}/{name} is not named NNN-name.md, and would be left out")
        for name in found.others
        if re.fullmatch(_MISNAMED, name)
    ]


def describe_gaps(plans: Sequence[PlanFile]) -> str:
    """Return the numbers that are missing between the first plan and the last, or an empty text."""
    numbers = sorted({plan.number for plan in plans})
    ranges = [
        f"{below + 1:03d}" if above == below + 2 else f"{below + 1:03d}-{above - 1:03d}"
        for below, above in itertools.pairwise(numbers)
        if above > below + 1
    ]
    return name_some(ranges)


def _parse_name(folder: str, name: str) -> PlanFile | None:
    parsed = re.fullmatch(_NAME, name)
    if parsed is None:
        return None
    path = name if folder == os.curdir else f"{folder}/{name}"
    return PlanFile(path, int(parsed[1]), unicodedata.normalize("NFC", parsed[2]))


def _list_shared_numbers(plans: Sequence[PlanFile]) -> list[str]:
    # They are sorted by number.
    return [
        one_line(f"{name_some(files)} share the number {number}")
        for number, same in itertools.groupby(plans, key=lambda plan: plan.number)
        if len(files := [plan.file for plan in same]) > 1
    ]


def _list_unreadable(workdir: str, plans: Sequence[PlanFile]) -> list[str]:
    problems = []
    for plan in plans:
        try:
            plan.file.encode()
            read_plan(workdir, plan)
        except UnicodeEncodeError:
            problems.append(one_line(f"the name {plan.file} is not UTF-8"))
        except ValueError as error:
            problems.append(one_line(f"{plan.file} {error}"))
    return problems


# Paths below the work directory, as somebody else names them.


def resolve_inside(workdir: str, path: str) -> str | None:
    """Return *path* from *workdir* (``.``), normalized; None if it leads out."""
    if not path.strip() or "\0" in path:
        return None
    root, typed = os.path.realpath(workdir), os.path.abspath(workdir)
    # An absolute path may name the work directory as it was typed, links included.
    found = _relative(path, root) or _relative(path, typed)
    if found is None:
        return None
    # The last part may be a link, which is then itself meant; its folder may not lie elsewhere.
    above = os.path.realpath(os.path.dirname(os.path.join(root, found)))
    return found if found == os.curdir or _relative(above, root) is not None else None


def _relative(path: str, base: str) -> str | None:
    try:
        found = os.path.relpath(os.path.normpath(os.path.join(base, path)), base)
    except ValueError:
        # Another drive of Windows.
        return None
    return None if found == os.pardir or found.startswith(os.pardir + os.sep) else found


def find_spelled(workdir: str, path: str) -> str | None:
    """Return *path* as it exists, in NFC or NFD, or None; *path* came from ``resolve_inside``."""
    found = ""
    for part in path.split(os.sep):
        spelled = _spelled_in(os.path.join(workdir, found), part)
        if spelled is None:
            return None
        found = os.path.join(found, spelled)
    return found


def _spelled_in(folder: str, name: str) -> str | None:
    if os.path.lexists(os.path.join(folder, name)):
        return name
    if name.isascii():
        return None
    wanted = unicodedata.normalize("NFC", name)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    return next((each for each in names if unicodedata.normalize("NFC", each) == wanted), None)


# Files read and replaced whole: a reader sees the old content or the new one.


def read_whole(path: str) -> bytes | None:
    try:
        # A pipe that nobody writes to is not waited for.
        with open(path, "rb", opener=lambda name, how: os.open(name, how | _AT_ONCE)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", path)
            content = file.read(_MOST_READ + 1)
    except FileNotFoundError:
        return None
    if len(content) > _MOST_READ:
        raise OSError(errno.EFBIG, f"it has more than {_MOST_READ:,} bytes", path)
    return content


def replace_whole(path: str, content: bytes) -> None:
    """Write *content* to *path* in folders made as needed; the mode stays.

    A single writer at a time: what a killed writer left behind is removed by the next.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def replace_if_changed(path: str, content: bytes) -> bool:
    """Replace *path* unless it holds *content* already; return whether it did."""
    with suppress(OSError):
        if read_whole(path) == content:
            return False
    replace_whole(path, content)
    return True


def keep_out_of_git(folder: str) -> None:
    """Let *folder* ignore itself in git if it is new or has our name, and is no link."""
    path = os.path.join(folder, ".gitignore")
    has_our_name = os.path.basename(folder) in _OUR_FOLDERS and not os.path.islink(folder)
    is_ours = has_our_name or not os.path.lexists(folder)
    if is_ours and not os.path.lexists(path):
        replace_whole(path, b"*\n")
