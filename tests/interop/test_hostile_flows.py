"""Forged splits, branches and joins: found in every workflow, refused by a hub and by a fetch."""

from pathlib import Path

import pytest
from interop.commits import ROWS, forge, uwf
from interop.honest_flows import SOURCES, Told, git, tell
from interop.hub import Hub, make_hub

from uwf_git.store.store import create_store

# A push and a fetch take a second; what verify finds they refuse, whatever it is.
SAMPLED = 4

ALL = ("refs/threads/*:refs/threads/*", "refs/archive/*:refs/archive/*")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Told:
    return tell(tmp_path_factory.mktemp("told"), request.param)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """Return a hub that stays empty, as it refuses all."""
    return make_hub(tmp_path_factory.mktemp("hub"))


@pytest.mark.parametrize("told", SOURCES, indirect=True)
def test_what_was_not_forged_is_accepted(told: Told, tmp_path: Path) -> None:
    store = told.copy(tmp_path).world.store.path
    hub = make_hub(tmp_path)

    git("push", "-q", str(hub.path), *ALL, cwd=store)

    assert uwf(str(hub.path), "verify").status == 0


@pytest.mark.parametrize("told", SOURCES, indirect=True)
def test_each_forgery_is_found_refused_and_not_fetched(
    told: Told, hub: Hub, tmp_path: Path
) -> None:
    """A clone takes what is sound, and nothing else."""
    for number, (name, (stories, _forge)) in enumerate(ROWS.items()):
        # In its first workflow and in another: what verify compares is made anew alike in all.
        if told.name not in {stories[0], stories[number % len(stories)]}:
            continue
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        place.mkdir()
        forged = forge(name, told, place)
        assert uwf(forged, "verify").status == 5, name
        if told.name != stories[0] or number % SAMPLED:
            continue
        said = git("push", str(hub.path), *ALL, cwd=forged, check=False)
        assert "pre-receive hook declined" in said, (name, said)
        assert "Traceback" not in said
        clone = create_store(str(place / "clone.git")).path
        assert uwf(clone, "remote", "add", "origin", forged).status == 0
        assert uwf(clone, "fetch").status != 0, name
        assert uwf(clone, "verify").status == 0, name
    assert hub.refs() == {}
