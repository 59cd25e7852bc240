import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.store.git.config import GitConfig
from uwf_git.store.remotes.remotes import (
    folder_of,
    parse_remote_url,
    rewrite_url,
    shown_url,
    without_passwords,
)


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("hub.git", "path", "/here/hub.git"),
        ("../hub.git", "path", "/hub.git"),
        ("/srv/hub.git", "path", "/srv/hub.git"),
        ("./a:b", "path", "/here/a:b"),
        ("file:///srv/the%20hub.git", "path", "/srv/the hub.git"),
        ("file://localhost/srv/x", "path", "/srv/x"),
        ("git://host/x", "git", "git://host/x"),
        ("host:x", "ssh", "host:x"),
        ("me@host:/srv/x.git", "ssh", "me@host:/srv/x.git"),
        ("ssh://me@host:22/x", "ssh", "ssh://me@host:22/x"),
        ("ssh+git://host/x", "ssh", "ssh://host/x"),
        ("HTTPS://host/x", "http", "https://host/x"),
        ("http://me:a:b%2Fc@[::1]:80/x", "http", "http://me:a:b%2Fc@[::1]:80/x"),
        ("ssh://host:/x", "ssh", "ssh://host:/x"),
        ("host:./me@work/x", "ssh", "host:./me@work/x"),
        ("gitlab:x", "ssh", "gitlab:x"),
        ("git/x@y", "path", "/here/git/x@y"),
        ("/srv/u:p@host/x", "path", "/srv/u:p@host/x"),
    ],
)
def test_place_is_read_as_git_does(text: str, kind: str, place: str) -> None:
    parsed = parse_remote_url(text, relative_to="/here")
    assert (parsed.kind, parsed.text) == (kind, place)


@pytest.mark.parametrize(
    "text",
    [
        *("", "ext::sh -c id", "ftp://host/x", "http://", "git://:9418/x", "file://other/x"),
        *("-oProxyCommand=id:x", "ssh://-oProxyCommand=id/x", "host:-x", ":x", "me@:x"),
        *("http://ho st/x", "a\0b"),
    ],
)
def test_what_leads_nowhere_is_refused(text: str) -> None:
    with refuses("bad-remote-url") as refused:
        parse_remote_url(text, relative_to="/here")
    assert "\0" not in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        *("http://me:secret@host:port/x", "ssh://me:secret@host:65536/x", "git://host:0/x"),
        *("https://me:sec/ret@host/x", "https://me:secret@[host/x", "http://a\\@host/x"),
        *("https://me:secret@[::1/x", "http://me:secret@host:-1/x", "http://ho℀st/x"),
        *("https:/me:secret@host/x", "https:me:secret@host/x", "https//me:secret@host/x"),
        *("ssh:/me:secret@host/x", "HTTP:host/x", "file:x", "https/me:secret@host"),
        *("me:secret@host:x", "me:secret@host/x", "me:sec@ret@host/x"),
    ],
)
def test_malformed_url_becomes_no_other_place(text: str) -> None:
    with refuses("bad-remote-url") as refused:
        parse_remote_url(text, relative_to="/here")
    document = f"{refused.value.message} {refused.value.hint} {refused.value.facts}"
    assert not any(part in document for part in ("secret", "sec/ret", "sec@ret"))
    if "://" in text:
        assert not any(part in shown_url(text) for part in ("secret@", "sec/ret"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/x", "https://host/x"),
        ("https://token@host:8443/x?y#z", "https://host:8443/x?y#z"),
        ("http://a@b:secret@host/x", "http://host/x"),
        ("ssh://me:secret@host/x", "ssh://me@host/x"),
        ("me@host:x", "me@host:x"),
        ("/srv/a@b", "/srv/a@b"),
        ("git://u:p@host/x", "git://host/x"),
    ],
)
def test_no_password_is_shown(text: str, shown: str) -> None:
    assert shown_url(text) == shown


@given(st.text("ab:@%/", max_size=8), st.text("xyz", min_size=3, max_size=8))
def test_whatever_the_user_is_called_the_password_is_not_in_words(user: str, secret: str) -> None:
    url = f"https://{user.replace('/', '')}:{secret}@host/p"
    assert secret not in without_passwords(f"could not open {url}", url)
    assert secret not in shown_url(url)


def test_words_lose_the_password_even_unquoted() -> None:
    url = "https://me:pass%20word@host/x"
    words = without_passwords("401 for https://me:pass%20word@host/x (pass word)", url)
    assert "pass" not in words


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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("https://host/team/threads.git", "threads.git"),
        ("/srv/threads", "threads.git"),
        ("/srv/project/.git/", "project.git"),
        ("host:threads.git", "threads.git"),
        ("/", ""),
        ("/..", ""),
    ],
)
def test_clone_is_called_as_git_would_call_it(text: str, name: str) -> None:
    assert folder_of(text) == name
