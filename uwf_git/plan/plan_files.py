"""Plan files: ``NNN-name.md`` in one folder, in the order of their numbers. Source: seed 002."""

import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.errors import BadUsage, name_some
from uwf_git.model.text import one_line
from uwf_git.plan.inside import find_spelled, resolve_inside

PLAN_DIR = "docs/plans"
"""Where plan files are, from the work directory, unless a setting says otherwise."""

MOST_BYTES = 1024 * 1024
"""The most that a plan file may hold."""

_NAME = re.compile(r"([0-9]{3,})-(.+)\.md", re.DOTALL)


class PlanFile(NamedTuple):
    """A file whose name is that of a plan; its content may still be wrong."""

    file: str
    """Its path from the work directory, with slashes, as it is on the disk."""

    number: int
    name: str
    """What follows the number, without ``.md``, in NFC."""


class PlanSet(NamedTuple):
    """What a plan directory holds."""

    plan_dir: str
    """Its path from the work directory, with slashes."""

    plans: tuple[PlanFile, ...]
    """By number, then by name."""

    others: tuple[str, ...]
    """The names of all else in it, sorted."""


class UnreadablePlan(ValueError):
    """A plan file is empty, or cannot be read as text; the message says which."""


def find_plans(workdir: str, plan_dir: str = PLAN_DIR) -> PlanSet:
    """List the plan files in *plan_dir*; a folder that is not there has none.

    Raises:
        BadUsage: *plan_dir* is not below *workdir*, or a link leads out of it.
        OSError: it cannot be listed.
    """
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
    """Return the text of a plan file: no BOM, and newlines as line ends.

    Raises:
        UnreadablePlan: it is no regular file of UTF-8, is empty, or is too large.
    """
    path = os.path.join(workdir, plan.file)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise UnreadablePlan("is not a regular file")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnreadablePlan(f"cannot be read: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise UnreadablePlan(f"has more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadablePlan(f"is not UTF-8 (byte {error.start:,})") from error
    if not text.strip():
        raise UnreadablePlan("is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def list_plan_problems(workdir: str, found: PlanSet) -> list[str]:
    """List, a line each, why the plans cannot be carried out; [] if they can."""
    if not found.plans:
        seen = f"; it has {name_some(found.others, most=3)}" if found.others else ""
        return [one_line(f"{found.plan_dir} has no plan file, named NNN-name.md{seen}")]
    return [*_list_shared_numbers(found.plans), *_list_unreadable(workdir, found.plans)]


def describe_gaps(plans: Sequence[PlanFile]) -> str:
    """Return the numbers that are missing between the first plan and the last, or an empty text."""
    numbers = sorted({plan.number for plan in plans})
    ranges = [
        f"{below + 1:03d}" if above - below == _ONE_MISSING else f"{below + 1:03d}-{above - 1:03d}"
        for below, above in itertools.pairwise(numbers)
        if above - below >= _ONE_MISSING
    ]
    return name_some(ranges)


_ONE_MISSING = 2


def _parse_name(folder: str, name: str) -> PlanFile | None:
    parsed = _NAME.fullmatch(name)
    if parsed is None:
        return None
    path = name if folder == os.curdir else f"{folder}/{name}"
    return PlanFile(path, int(parsed[1]), unicodedata.normalize("NFC", parsed[2]))


def _list_shared_numbers(plans: Sequence[PlanFile]) -> list[str]:
    by_number: dict[int, list[str]] = {}
    for plan in plans:
        by_number.setdefault(plan.number, []).append(plan.file)
    return [
        one_line(f"{name_some(files)} share the number {number}")
        for number, files in by_number.items()
        if len(files) > 1
    ]


def _list_unreadable(workdir: str, plans: Sequence[PlanFile]) -> list[str]:
    problems = []
    for plan in plans:
        try:
            plan.file.encode()
            read_plan(workdir, plan)
        except UnicodeEncodeError:
            problems.append(one_line(f"the name {plan.file} is not UTF-8"))
        except UnreadablePlan as error:
            problems.append(one_line(f"{plan.file} {error}"))
    return problems
