import pytest
from refusing import refuses

from uwf_git.store.git.config import GitConfig, list_mirrors, moves_threads_back, refuse_mirror


def test_a_forced_refspec_onto_our_refs_moves_them_back() -> None:
    for refspec, expected in [
        ("+refs/*:refs/*", True),
        ("+refs/threads/*:refs/threads/*", True),
        ("+refs/heads/threads/*:refs/threads/*", True),
        ("+refs/archive/01J:refs/archive/01J", True),
        ("+refs/cas/nodes:refs/cas/nodes", True),
        ("refs/*:refs/*", False),
        ("+refs/heads/*:refs/remotes/origin/*", False),
        ("+refs/threads/*:refs/uwf/remotes/origin/threads/*", False),
        ("+refs/heads/main", False),
        ("^refs/threads/*", False),
    ]:
        assert moves_threads_back(refspec) is expected


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"remote.a.mirror": ["true"]}, ["a"]),
        ({"remote.a.mirror": ["true", "false"]}, []),
        ({"remote.a.b.fetch": ["+refs/heads/*:refs/heads/*", "+refs/*:refs/*"]}, ["a.b"]),
        ({"remote.b.push": ["+refs/*:refs/*"], "remote.a.mirror": ["yes"]}, ["a", "b"]),
    ],
    ids=str,
)
def test_mirrors_are_found_and_refused(settings: dict[str, list[str]], names: list[str]) -> None:
    config = GitConfig(settings)
    assert list_mirrors(config) == names
    if not names:
        refuse_mirror(config)
        return
    with refuses("mirror-store", match="git fetch") as refused:
        refuse_mirror(config)
    assert refused.value.facts == {"remotes": names}
    assert "`uwf remote repair`" in (refused.value.hint or "")
