import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import refuses

from uwf_git.model.names import Oid
from uwf_git.store.git.config import GitConfig, add_config, set_config
from uwf_git.store.remotes.remotes import (
    RemoteUrl,
    Sides,
    add_remote,
    choose_remote,
    folder_of,
    is_remote_name,
    list_remotes,
    parse_remote_url,
    remote_url,
    rewrite_url,
    shown_url,
    without_passwords,
)
from uwf_git.store.remotes.transport import RemoteFailed, request_safely
from uwf_git.store.store import Store, create_store, open_store

URLS = Path(__file__).parent / "made_up" / "urls.json"


Git = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"), environ=os.environ)


def reopened(store: Store) -> Store:
    return open_store(store.path, environ=os.environ)


def test_added_remote_is_what_git_reads(store: Store, git: Git, tmp_path: Path) -> None:
    added = add_remote(store, "origin", "hub.git", cwd=str(tmp_path))
    assert added.url == f"{tmp_path}/hub.git"
    assert list_remotes(store.config) == list_remotes(reopened(store).config) == [added]
    told = git("config", "--get-regexp", r"^remote\.", cwd=Path(store.path)).splitlines()
    tracked = "refs/uwf/remotes/origin"
    assert told == [
        f"remote.origin.url {tmp_path}/hub.git",
        *(
            f"remote.origin.fetch +refs/{kind}/*:{tracked}/{kind}/*"
            for kind in ("threads", "archive", "workflows")
        ),
        *(
            f"remote.origin.push refs/{kind}/*:refs/{kind}/*"
            for kind in ("threads", "archive", "workflows")
        ),
    ]


@given(st.text("ab./-@{~:?*[\\ lock\x00\x7f_ü", max_size=8))
def test_names_are_those_that_git_takes(name: str) -> None:
    parts = f"refs/remotes/{name}/x".split("/")
    wrong = (
        not all(parts)
        or any(part.startswith(".") or part.endswith(".lock") for part in parts)
        or ".." in name
        or "@{" in name
        or any(char in "~^:?*[\\ \x00\x7f" for char in name)
    )
    assert is_remote_name(name) == (not wrong)


def test_the_default_is_the_only_one_else_origin(store: Store, tmp_path: Path) -> None:
    with refuses("which-remote", match="no remote yet"):
        choose_remote(store.config, None)
    add_remote(store, "b", "b.git", cwd=str(tmp_path))
    assert choose_remote(store.config, None).name == "b"
    add_remote(store, "a", "a.git", cwd=str(tmp_path))
    with refuses("which-remote") as which:
        choose_remote(store.config, None)
    assert "a, b" in (which.value.hint or "")
    add_remote(store, "origin", "c.git", cwd=str(tmp_path))
    assert choose_remote(store.config, None).name == "origin"
    assert choose_remote(store.config, "a").name == "a"
    with refuses("no-such-remote", match="there is no remote c") as unknown:
        choose_remote(store.config, "c")
    assert "there are a, b, origin; a thread's name comes after" in (unknown.value.hint or "")


def test_a_project_s_own_remotes_count_only_where_no_other_was_added(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("remote", "add", "origin", "https://forge.example.com/project", cwd=Path(store.path))
    assert choose_remote(reopened(store).config, None).name == "origin"
    added = reopened(store)
    add_remote(added, "threads", "hub.git", cwd=str(tmp_path))
    assert choose_remote(added.config, None).name == "threads"
    assert choose_remote(added.config, "origin").name == "origin"
    add_remote(added, "backup", "backup.git", cwd=str(tmp_path))
    git("remote", "rename", "threads", "hub", cwd=Path(store.path))
    for config, name in ((added.config, "threads"), (reopened(store).config, "hub")):
        with refuses("which-remote") as which:
            choose_remote(config, None)
        assert which.value.facts["known"] == ["backup", name]


def test_beside_a_remote_another_name_is_proposed(store: Store, git: Git, tmp_path: Path) -> None:
    git("remote", "add", "origin", "https://forge.example.com/project", cwd=Path(store.path))
    for free in ("threads", "hub", "uwf", "threads2", "threads3"):
        with refuses("remote-exists") as exists:
            add_remote(store, "origin", "hub.git", cwd=str(tmp_path))
        assert f"`uwf remote add {free} URL`" in (exists.value.hint or "")
        assert "remove" not in (exists.value.hint or "")
        add_remote(store, free, "hub.git", cwd=str(tmp_path))


def test_pushes_may_go_elsewhere_but_to_one_place(store: Store, tmp_path: Path) -> None:
    remote = add_remote(store, "origin", "https://host/x", cwd=str(tmp_path))
    config = f"{store.path}/config"
    set_config(config, "url.ssh://host/.pushInsteadOf", "https://host/")
    store = reopened(store)
    assert remote_url(store, remote).text == "https://host/x"
    assert remote_url(store, remote, for_push=True).text == "ssh://host/x"
    add_config(config, "remote.origin.pushurl", "https://host/y")
    store = reopened(store)
    remote = choose_remote(store.config, None)
    assert remote_url(store, remote, for_push=True).text == "https://host/y"
    add_config(config, "remote.origin.pushurl", "https://host/z")
    store = reopened(store)
    with refuses("several-push-urls"):
        remote_url(store, choose_remote(store.config, None), for_push=True)


def test_push_to_several_urls_is_refused_as_git_would_push_to_all(
    store: Store, tmp_path: Path
) -> None:
    add_remote(store, "origin", "https://host/x", cwd=str(tmp_path))
    add_config(f"{store.path}/config", "remote.origin.url", "https://host/y")
    store = reopened(store)
    remote = choose_remote(store.config, None)
    assert remote_url(store, remote).text == "https://host/x"
    with refuses("several-push-urls"):
        remote_url(store, remote, for_push=True)


HUB = "http://hub/t.git"
REMOTE = RemoteUrl("http", HUB)
HEADERS = {"Authorization": "Basic x", "Private-Token": "y", "Accept": "*/*"}


class Answer:
    """What a web server answers."""

    def __init__(self, place: str | None) -> None:
        self.status = (401 if place == "" else 200) if not place else 302
        self.headers = {} if place is None else {"Location": place}

    def geturl(self) -> str:
        raise NotImplementedError

    def close(self) -> None:
        """Be closed."""


def ask(places: Mapping[str, str], method: str = "GET") -> tuple[str, list[tuple[str, list[str]]]]:
    """Ask for the hub where servers redirect as *places* say; return the end, and what was sent."""
    sent: list[tuple[str, list[str]]] = []

    def request(_method: str, url: str, *, redirect: bool, headers: Mapping[str, str]) -> Answer:
        assert not redirect
        sent.append((url, list(headers)))
        return Answer(places.get(url))

    answer: Any = request_safely(
        request, method, HUB, remote=REMOTE, private={"private-token"}, headers=HEADERS
    )
    return answer.geturl(), sent


@pytest.mark.parametrize(
    "place", ["http://other/t.git", "https://hub/t.git", "http://hub:81/t.git", "//other/t.git"]
)
def test_another_server_gets_nothing_private(place: str) -> None:
    _end, sent = ask({HUB: place})
    assert [headers for _url, headers in sent] == [list(HEADERS), ["Accept"]]


def test_nothing_private_comes_back_from_another_server() -> None:
    end, sent = ask({HUB: "http://other/", "http://other/": "http://hub/v.git"})
    assert end == "http://hub/v.git"
    assert sent[-1] == (end, ["Accept"])


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://hub/", "ssh://hub/x"])
def test_what_is_not_on_the_web_is_not_asked(place: str) -> None:
    with pytest.raises(RemoteFailed, match="not on the web"):
        ask({HUB: place})


def test_login_that_another_server_asks_for_is_not_ours() -> None:
    with pytest.raises(RemoteFailed, match="redirects to other, which asks for a name"):
        ask({HUB: "http://other/", "http://other/": ""})
    assert ask({HUB: ""})[0] == HUB


def test_redirects_end() -> None:
    with pytest.raises(RemoteFailed, match="without end"):
        ask({HUB: HUB})


A, B = Oid("a" * 40), Oid("b" * 40)


@pytest.mark.parametrize(
    ("sides", "is_in_sync"),
    [
        (Sides(None, None, None, None), True),
        (Sides(A, None, A, None), True),
        (Sides(A, None, B, None), False),
        (Sides(None, None, A, None), False),
        (Sides(None, A, None, A), True),
        (Sides(None, A, None, B), False),
        (Sides(A, A, None, A), False),
    ],
)
def test_what_is_the_same_needs_no_look(sides: Sides, is_in_sync: bool) -> None:  # noqa: FBT001 (a column)
    assert sides.is_in_sync == is_in_sync


def test_urls_are_read_as_git_does_and_shown_without_passwords(
    golden: Callable[[str, str], None],
) -> None:
    def tell_place(text: str) -> object:
        return parse_remote_url(text, relative_to="/here")

    answers = {"parse_remote_url": tell_place, "folder_of": folder_of, "shown_url": shown_url}
    golden("store/urls.txt", tell_cases(URLS, answers))


@given(st.text("ab:@%/", max_size=8), st.text("xyz", min_size=3, max_size=8))
def test_whatever_the_user_is_called_the_password_is_not_in_words(user: str, secret: str) -> None:
    url = f"https://{user.replace('/', '')}:{secret}@host/p"
    assert secret not in without_passwords(f"could not open {url}", url)
    assert secret not in shown_url(url)


def test_urls_are_rewritten_by_the_longest_beginning() -> None:
    config = GitConfig(
        {
            "url.git@example.com:.insteadof": ["https://example.com/", "ex:"],
            "url.https://mirror/team/.insteadof": ["https://example.com/team/"],
            "url.ssh://push/.pushinsteadof": ["https://example.com/"],
        }
    )
    assert rewrite_url("ex:x", config, for_push=False) == "git@example.com:x"
    assert rewrite_url("https://example.com/a", config, for_push=False) == "git@example.com:a"
    assert rewrite_url("https://example.com/team/a", config, for_push=False) == (
        "https://mirror/team/a"
    )
    assert rewrite_url("https://example.com/a", config, for_push=True) == "ssh://push/a"
    assert rewrite_url("ex:x", config, for_push=True) == "git@example.com:x"
    assert rewrite_url("/x", config, for_push=True) == "/x"


def test_words_lose_the_password_even_unquoted() -> None:
    url = "https://me:pass%20word@host/x"
    assert "pass" not in without_passwords("401 for https://me:pass%20word@host/x (pass word)", url)
