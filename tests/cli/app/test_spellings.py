import pytest
from cli.program import Uwf

from uwf_git.cli.app.failure import _MEANT, find_meant
from uwf_git.cli.app.lazy_group import LazyGroup
from uwf_git.cli.uwf import UWF

THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def table(words: list[str]) -> LazyGroup | None:
    """Return the group that *words* lead to."""
    group: object = UWF
    for word in words:
        group = group.table.get(word) if isinstance(group, LazyGroup) else None
    return group if isinstance(group, LazyGroup) else None


@pytest.mark.parametrize("group", sorted(_MEANT))
def test_every_spelling_names_commands_that_exist_and_is_none_itself(group: str) -> None:
    here = table(group.split()[1:])
    assert here is not None
    assert [word for word in _MEANT[group] if word in here.table] == []
    meant = {each for told in _MEANT[group].values() for each in told}
    for command in sorted(each for each in meant if not each.startswith("git ")):
        words = [word for word in command.split()[1:] if not word.startswith("-")]
        there = table(words[:-1])
        assert there is not None, command
        assert words[-1] in there.table, command


def test_old_spelling_names_the_right_command(uwf: Uwf) -> None:
    for typed, meant in [
        ("add", "`uwf workflow put`"),
        ("LIST", "`uwf thread list` or `uwf workflow list`"),
        ("show", "`uwf thread show` or `uwf workflow show`"),
        ("remove", "`uwf workflow remove` or `uwf thread rm`"),
        ("threads", "`uwf thread list`"),
        ("cancel", "`uwf thread kill`"),
        ("status", "`uwf thread show` or `uwf ps`"),
        ("stop", "`uwf thread pause --now` or `uwf thread kill`"),
        ("ls", "`uwf thread list` or `uwf workflow list`"),
        (f"thread {THREAD}", f"`uwf thread show {THREAD}`"),
        ("thread 01j7k", "`uwf thread show 01j7k`"),
        ("thread status", "`uwf thread show`"),
        ("thread cancel", "`uwf thread kill`"),
    ]:
        ran = uwf(*typed.split())
        assert ran.status == 2
        assert f"did you mean {meant}?" in ran.err


@pytest.mark.parametrize("typed", ["0", "1J7K9M2", "01J7K9M2-", "nonsense", f"{THREAD}0"])
def test_what_is_no_thread_id_is_none(typed: str) -> None:
    assert find_meant("uwf thread", typed) == ()
    assert find_meant("uwf", THREAD) == ()
