"""A hub that several users of one machine share as a group; root alone can try it."""

import ctypes
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commands.at_work import RESULT, wait_for
from commands.crowd import at_once
from commands.sharing import Site, another, refs_of, share
from commands.world import DEMO, World
from store.killing import in_child

from uwf_git.agents.run_files import RunDirUnusable
from uwf_git.commands.admin import gc_store, init_shared
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import PlayedElsewhere
from uwf_git.commands.caller import Caller
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import create_store, open_store

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")

TEAM, ANN, BOB, EVE = 60_100, 60_001, 60_002, 60_003
SHARED = Path("/mnt/team")
HUB = SHARED / "hub.git"
NEW_MOUNTS = 0x00020000  # linux/sched.h


def test_ann_and_bob_share_a_hub_and_eve_does_not() -> None:
    told = in_child(play)
    if isinstance(told, BaseException):
        raise told
    if told != "played":
        pytest.skip(str(told))


def play() -> str:
    """Be root in a place of our own, and let each user act in turn."""
    try:
        furnish()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"nothing can be mounted here: {error}"
    be(ANN, begin)
    thread = be(ANN, ann_shares)
    be(BOB, bob_is_asked_whether_he_trusts_ann)
    be(BOB, partial(bob_goes_on, thread))
    for packer, other in ((ANN, BOB), (BOB, ANN)):
        be(packer, pack)
        be(other, more)
    at_once(4, lambda number: be((ANN, BOB)[number % 2], more))
    be(EVE, eve_is_told)
    be(BOB, partial(git, "fsck", "--strict", cwd=HUB))
    assert len(refs_of(HUB, "threads")) == 6
    assert list(refs_of(HUB, "archive")) == [f"archive/{thread}"]
    at_once(2, lambda number: be(*((ANN, ann_works), (BOB, bob_kills))[number]))
    thread = be(ANN, ann_loses_her_engine)
    [printed] = HUB.glob("uwf/run/*/*/stdout")
    before = printed.stat().st_mode
    printed.chmod(0o600)
    be(BOB, partial(bob_may_not_take, thread))
    printed.chmod(before)
    be(BOB, partial(bob_takes, thread))
    check_rights()
    return "played"


def furnish() -> None:
    """Mount a place for all, which nobody else sees, and let all reach this Python."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")
    closed = [each for each in Path(sys.base_prefix).parents if not each.stat().st_mode & 1]
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt")
    if closed:
        Path("/mnt/python").mkdir()
        mount("--rbind", sys.base_prefix, "/mnt/python")
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(closed[-1]))
        Path(sys.base_prefix).mkdir(parents=True)
        mount("--rbind", "/mnt/python", sys.base_prefix)
    SHARED.mkdir()
    os.chown(SHARED, 0, TEAM)
    SHARED.chmod(0o2770)
    for user in (ANN, BOB, EVE):
        home = home_of(user)
        (home / "tmp").mkdir(parents=True)
        (home / ".gitconfig").write_text("[gc]\n\tautoDetach = false\n[safe]\n\tdirectory = *\n")
        for path in (home, home / "tmp"):
            os.chown(path, user, user)
            path.chmod(0o700)


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def home_of(user: int) -> Path:
    return Path(f"/mnt/{user}")


def be(user: int, act: Callable[[], str | None]) -> str:
    """Let a user do something; return what it returns."""
    told = in_child(partial(as_user, user, act))
    assert isinstance(told, str), told
    assert not told.startswith("Traceback"), told
    return told


def as_user(user: int, act: Callable[[], str | None]) -> str:
    os.setgroups([] if user == EVE else [TEAM])
    os.setgid(user)
    os.setuid(user)
    # What most systems give, and what would lock the others out.
    os.umask(0o022)
    home = home_of(user)
    places = {"HOME": home, "TMPDIR": home / "tmp", "GIT_CONFIG_GLOBAL": home / ".gitconfig"}
    os.environ.update({name: str(path) for name, path in places.items()})
    os.environ.update({f"XDG_{name}_HOME": f"{home}/{name}" for name in ("CONFIG", "STATE")})
    os.chdir(home)
    try:
        return act() or "done"
    except BaseException:  # noqa: BLE001 - it is reported to root
        return traceback.format_exc()


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


def begin() -> None:
    init_shared(str(HUB), str(SHARED), os.environ, python=sys.executable)


def world() -> World:
    """Return the user's own store, and what it needs."""
    home = Path.cwd()
    path = home / "store.git"
    if not path.exists():
        create_store(str(path))
    (home / "place").mkdir(exist_ok=True)
    made = len(list(home.glob("made-*")))
    number = os.getuid() * 1000 + os.getpid() % 1000
    (home / f"made-{os.getpid()}").touch()
    ids = iter(f"01J{number:010}{made:03}{at:010}" for at in range(9))
    caller = Caller(lambda: 1_760_000_000_000, dict(os.environ), str(home / "place"))
    store = open_store(str(path), environ=os.environ)
    return World(home / "place", store, caller, lambda: ThreadId(next(ids)))


def ann_shares() -> str:
    site, thread = share(world(), str(HUB))
    assert site.push().failure() is None
    return thread


def bob_is_asked_whether_he_trusts_ann() -> None:
    """Check what git's own question becomes: whose hooks and settings run here."""
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    with pytest.raises(RemoteFailed, match="dubious ownership") as failed:
        another(world(), str(HUB), name="asked")
    assert f"`git config --global --add safe.directory {HUB}`" in str(failed.value.hint)


def bob_goes_on(thread: str) -> None:
    site = another(world(), str(HUB), name="shared")
    site.end(ThreadId(thread))
    assert site.push().failure() is None


def more() -> None:
    """Start another thread, and push it."""
    shared = Path.cwd() / "shared.git"
    mine = world()
    if shared.exists():
        mine.store = open_store(str(shared), environ=os.environ)
    site = Site(mine)
    assert site.fetch().failure() is None
    thread = site.world.start()
    site.step(thread)
    assert site.push(thread).failure() is None


def pack() -> None:
    gc_store(open_store(str(HUB), environ=os.environ), os.environ)
    git("gc", "--quiet", cwd=HUB)


def eve_is_told() -> None:
    site, _thread = share(world(), str(HUB))
    for act in (site.push, site.fetch):
        with pytest.raises(RemoteFailed) as failed:
            act()
        assert "\n" not in failed.value.message


# Both work in the hub itself.

WORK = f"""echo $1 >{SHARED}/begun
n=0; while [ ! -e {SHARED}/go ] && [ $n -lt 999 ]; do sleep 0.02; n=$((n + 1)); done
{RESULT}"""


def in_hub() -> World:
    """Return the world of a user in the hub, where uwf has set the umask."""
    os.umask(0o002)
    mine = world()
    mine.store = open_store(str(HUB), environ=os.environ)
    return mine


def begin_work(mine: World) -> ThreadId:
    for name in ("begun", "go"):
        (SHARED / name).unlink(missing_ok=True)
    return mine.begun(DEMO, mine.program(WORK))


def ann_works() -> None:
    mine = in_hub()
    thread = begin_work(mine)
    assert mine.step(thread, agent_player(None)).depth == 1
    mine.reopen()
    assert mine.events(thread) == ["start", "step", "kill"]


def bob_kills() -> None:
    wait_for(SHARED / "begun")
    thread = (SHARED / "begun").read_text().strip()
    with pytest.raises(PlayedElsewhere, match="is killed after that step") as told:
        in_hub().kill(thread)
    assert "another user runs its agent" in str(told.value.hint)
    assert "if its engine dies, the next step ends the thread" in str(told.value.hint)
    (SHARED / "go").touch()


def ann_loses_her_engine() -> str:
    mine = in_hub()
    thread = begin_work(mine)
    engine = mine.process("thread", "step", thread)
    wait_for(SHARED / "begun", engine)
    engine.kill()
    engine.communicate()
    return thread


def bob_may_not_take(thread: str) -> None:
    heard: list[bytes] = []
    his = in_hub()
    with pytest.raises(RunDirUnusable, match="Permission denied"):
        his.step(thread, agent_player(heard.append))
    with pytest.raises(Conflict) as told:
        his.kill(thread)
    assert heard == []
    assert "of its user waits for it" in str(told.value.hint)


def bob_takes(thread: str) -> None:
    (SHARED / "go").touch()
    assert in_hub().step(thread, agent_player(None)).depth == 1


def check_rights() -> None:
    """Check that the team may do everything in the hub, and nobody else anything new."""
    for path in [HUB, *HUB.rglob("*")]:
        found = path.stat()
        wanted = 0o070 if path.is_dir() else 0o040
        assert found.st_gid == TEAM, path
        assert found.st_mode & wanted == wanted, (path, oct(found.st_mode))
