import pytest
from dulwich.client import HTTPProxyUnauthorized, StrangeHostname
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from urllib3.exceptions import ReadTimeoutError

from uwf_git.store.remotes.remotes import RemoteUrl
from uwf_git.store.remotes.transport import RemoteFailed, failures, unauthorized

URL = RemoteUrl("http", "https://me:secret@host/x")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotGitRepository(), "there is no git repository"),
        (TimeoutError("timed out"), "did not answer in time"),
        (GitProtocolError("timed out"), "did not answer in time"),
        (GitProtocolError("unexpected http resp 403 for https://me:secret@host/x"), "403"),
        (GitProtocolError(), "broke off"),
        (ReadTimeoutError(None, None, "Read timed out."), "did not answer in time"),  # type: ignore[arg-type]  # as in a pool
        (HangupException(), "without a message"),
        (HangupException([b"Warning: hello\n", b"fatal: no \x1b[2Jsuch place\n"]), "x: no "),
        (
            GitProtocolError(
                "HTTPConnectionPool(host='x', port=1): Max retries exceeded with url: /x (Caused "
                "by NewConnectionError(\"HTTPConnection(host='x', port=1): Failed to establish a "
                'new connection: [Errno 111] Connection refused"))'
            ),
            "x: Connection refused$",
        ),
        (
            GitProtocolError(
                "HTTPSConnectionPool(host='x', port=443): (Caused by SSLError("
                "SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify "
                "failed: self-signed certificate (_ssl.c:1006)')))"
            ),
            "x: certificate verify failed: self-signed certificate$",
        ),
        (HTTPProxyUnauthorized(None, "x"), "proxy"),
        (StrangeHostname("-x"), "host name is not valid"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError(), "broke off"),
        (AssertionError(), "protocol"),
        (KeyError("x"), "KeyError"),
    ],
)
def test_whatever_fails_is_one_line_with_the_place_and_a_hint(error: Exception, words: str) -> None:
    with pytest.raises(RemoteFailed, match=words) as failed, failures(URL):
        raise error
    message = failed.value.message
    assert message.startswith("https://host/x: ")
    assert message.isprintable()
    assert "secret" not in f"{message} {failed.value.hint} {failed.value.facts}"
    assert failed.value.hint
    assert failed.value.__cause__ is error


def test_a_refused_login_has_a_hint() -> None:
    assert "asks" in unauthorized(URL, told=False).message
    assert "refused" in unauthorized(URL, told=True).message
    assert "credential" in (unauthorized(URL, told=True).hint or "")


def test_folder_of_another_user_is_trusted_by_a_command_and_a_server_names_none() -> None:
    said = HangupException([b"fatal: detected dubious ownership in repository at '*'\n"])
    for kind, place in (("path", "/srv/a b.git"), ("ssh", "ssh://host/x")):
        with pytest.raises(RemoteFailed) as failed, failures(RemoteUrl(kind, place)):  # type: ignore[arg-type]  # of a loop
            raise said
        typed = "`git config --global --add safe.directory '/srv/a b.git'`"
        assert (typed in str(failed.value.hint)) == (kind == "path")
        assert "'*'" not in str(failed.value.hint)
