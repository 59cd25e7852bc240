"""Small stores of each kind, and damages of one file, as disks and people make them."""

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from commands.world import World

from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store

KINDS = ("loose", "packed by git", "packed and gone on", "many packs", "project")
# What is no object, ref or setting.
_PASSED_OVER = ("uwf/", "hooks/", "logs/", "description", "info/", "COMMIT_EDITMSG", "index")


def make_store(kind: str, world: World) -> Path:
    """Let *world* have an ended thread, an active one and a begun one, stored as *kind* says."""
    path = Path(world.store.path)
    if kind == "project":
        shutil.rmtree(path)
        git(path.parent, "init", "--quiet", str(path))
        git(path, "config", "uwf.fsync", "false")
        git(path, "commit", "--quiet", "--allow-empty", "-m", "begin")
        world.store = open_store(str(path), environ=world.caller.environ)
    ended, active = world.begun(), world.start()
    world.step(ended)
    world.step(ended)
    world.step(ended)
    world.step(active)
    world.start()
    _pack(kind, world, active)
    return path


def _pack(kind: str, world: World, active: ThreadId) -> None:
    path = Path(world.store.path)
    if kind in {"packed by git", "packed and gone on", "many packs"}:
        git(path, "gc", "--quiet", "--prune=now")
    if kind in {"packed and gone on", "many packs"}:
        world.reopen()
        world.step(active)
    if kind == "many packs":
        git(path, "repack", "--quiet", "-d")
        git(path, "multi-pack-index", "write")


def git(path: Path, *words: str) -> None:
    """Run git in *path*."""
    subprocess.run(["git", *words], cwd=path, check=True, capture_output=True)


def files_of(path: Path) -> list[str]:
    """List the files of a store that can be damaged, in an order that is always the same."""
    inner = path / ".git" if (path / ".git").is_dir() else path
    found = (each for each in inner.rglob("*") if each.is_file())
    names = sorted(each.relative_to(inner).as_posix() for each in found)
    prefix = "" if inner == path else ".git/"
    return [prefix + name for name in names if not name.startswith(_PASSED_OVER)]


def group_of(name: str) -> str:
    """Return the kind of a file, so that each kind is damaged as often as the others."""
    folder, _slash, file = name.removeprefix(".git/").rpartition("/")
    if folder.startswith("objects/") and len(folder) == len("objects/00"):
        return "loose object"
    return folder + Path(file).suffix if folder else file


Damage = Callable[[bytes, random.Random], bytes | None]


def _join_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = chance.randrange(len(lines) or 1)
    return b"".join([*lines[:at], lines[at][:-1] if lines else b"", *lines[at + 1 :]])


def _flip(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) or 1)
    flipped = bytes([content[at] ^ 1 << chance.randrange(8)]) if content else b"\0"
    return content[:at] + flipped + content[at + 1 :]


def _overwrite(content: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(content) or 1), chance.randrange(1, 40)
    return content[:at] + chance.randbytes(size) + content[at + size :]


def _insert_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines) + 1), chance.choice([b"garbage\n", b"\n"]))
    return b"".join(lines)


def _zero(content: bytes, chance: random.Random) -> bytes:
    """A file system that had grown the file, and not yet written all of it."""
    kept = chance.randrange(len(content) or 1)
    return content[:kept] + bytes(len(content) - kept)


DAMAGES: dict[str, Damage] = {
    "gone": lambda _content, _chance: None,
    "empty": lambda _content, _chance: b"",
    "cut": lambda content, chance: content[: chance.randrange(len(content) or 1)],
    "two lines joined": _join_lines,
    "garbage behind it": lambda content, chance: content + chance.randbytes(20),
    "a line behind it": lambda content, _chance: content + b"garbage\n",
    "zeros behind it": lambda content, _chance: content + bytes(4096),
    "zeros in it": _zero,
    "all zeros": lambda content, _chance: bytes(len(content)),
    "a bit flipped": _flip,
    "overwritten": _overwrite,
    "a line between": _insert_line,
    "twice": lambda content, _chance: content + content,
}


def damage(path: Path, how: str, chance: random.Random) -> None:
    """Damage the file at *path* as *how* says."""
    changed = DAMAGES[how](path.read_bytes(), chance)
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)
