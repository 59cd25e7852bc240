import os
import random
from collections.abc import Callable
from contextlib import ExitStack, chdir, nullcontext
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from dulwich.client import HTTPProxyUnauthorized, StrangeHostname, Urllib3HttpGitClient
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import ObjectID
from dulwich.pack import Pack, load_pack_index
from dulwich.protocol import Protocol
from fresh_store import REPOSITORY
from programs import write_program
from refusing import raising, refuses
from store.story import Story
from urllib3.exceptions import ReadTimeoutError

from uwf_git.errors import Refused
from uwf_git.model.names import Oid
from uwf_git.store.git.config import GitConfig, add_config, set_config
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.remotes.incoming import (
    ErrorOutput,
    FetchRequest,
    Meter,
    Parcel,
    PushReport,
    receive_objects,
)
from uwf_git.store.remotes.remotes import RemoteUrl, UrlKind, parse_remote_url
from uwf_git.store.remotes.transport import (
    Access,
    Credential,
    RemoteFailed,
    failures,
    fetch_pack,
    find_credential,
    list_refs_there,
    report_credential,
    send_pack,
    unauthorized,
)
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.trust import describe_command, trust_agents

DELTA_ROW = ("oid", "kind", "size", "packed", "offset", "depth", "base")


def damage_entry(store: Path, oid: Oid) -> None:
    (index,) = store.glob("objects/pack/*.idx")
    found = load_pack_index(str(index), DEFAULT_OBJECT_FORMAT)
    offset = found.object_offset(ObjectID(oid.encode()))
    found.close()
    pack = index.with_suffix(".pack")
    pack.chmod(0o600)
    with pack.open("r+b") as file:
        file.seek(offset + 4)
        file.write(b"\xff" * 8)


Git = Callable[..., str]

REF = "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T"


@pytest.fixture
def hub(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / REPOSITORY))


@pytest.fixture
def story(tmp_path: Path, clock: Callable[[], int]) -> Story:
    return Story(create_store(str(tmp_path / "store.git")), clock)


def access(hub: Store, environ: dict[str, str] | None = None) -> Access:
    url = parse_remote_url(hub.path, relative_to="/")
    return Access(url, GitConfig({}), dict(os.environ) if environ is None else environ)


def send(
    hub: Store, story: Story, changes: dict[str, Oid | None], *, atomic: bool = False
) -> PushReport:
    def pack(_refs: dict[str, Oid]) -> Parcel:
        tips = [oid for oid in changes.values() if oid is not None]
        objects = story.store.objects
        needed = [oid for tip in tips for oid in list_new_objects(objects, tip, set())]
        return Parcel(changes, needed)

    return send_pack(access(hub), story.store.objects, pack, atomic=atomic)


@pytest.mark.parametrize(
    "name",
    [
        *("GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
        *("GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_CONFIG_PARAMETERS"),
    ],
)
def test_local_variables_of_git_do_not_reach_the_git_of_the_remote(
    hub: Store, story: Story, git: Git, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    elsewhere = create_store(str(Path(hub.path).parent / "elsewhere.git")).path
    value = {
        "GIT_DIR": elsewhere,
        "GIT_COMMON_DIR": elsewhere,
        "GIT_NAMESPACE": "spaced",
        "GIT_CONFIG_PARAMETERS": "'receive.unpackLimit'='bad'",
    }.get(name, f"{elsewhere}/objects")
    with monkeypatch.context() as hook:
        hook.setenv(name, value)
        sent = send(hub, story, {REF: story.head.commit})
    assert sent.statuses == {REF: None}
    assert git("fsck", "--strict", cwd=Path(hub.path)) == ""
    assert hub.refs.find(REF) == story.head.commit
    assert git("cat-file", "-t", story.head.commit, cwd=Path(hub.path)) == "commit\n"
    assert git("count-objects", cwd=Path(elsewhere)).startswith("0 objects")


@pytest.mark.parametrize("with_git", [True, False])
def test_what_is_wanted_comes_and_what_is_had_stays_away(
    with_git: bool,  # noqa: FBT001 (a parameter)
    hub: Store,
    story: Story,
    tmp_path: Path,
) -> None:
    send(hub, story, {REF: story.head.commit})
    other = create_store(str(tmp_path / "other.git"))
    reached = access(hub, None if with_git else {"PATH": ""})
    assert reached.is_served_here == (not with_git)

    def fetch(haves: list[Oid]) -> int:
        with receive_objects(other) as incoming:
            fetch_pack(reached, lambda refs: FetchRequest([refs[REF]], haves), incoming)
            packs = Path(incoming.objects.pack_dir).glob("*.pack")
            paths = [str(pack.with_suffix("")) for pack in packs]
            count = sum(len(Pack(each, object_format=DEFAULT_OBJECT_FORMAT)) for each in paths)
            list_new_objects(incoming.objects, story.head.commit, set())
            with ExitStack() as until_needed:
                incoming.move_into_store(until_needed)
        return count

    before = story.head.commit
    whole = fetch([])
    send(hub, story, {REF: story.step().commit})
    # Bases of deltas come along; a whole thread is several times as much.
    assert fetch([before]) < whole / 2


def test_a_server_without_atomic_pushes_changes_nothing(hub: Store, story: Story, git: Git) -> None:
    git("config", "receive.advertiseAtomic", "false", cwd=Path(hub.path))
    report = send(hub, story, {REF: story.head.commit}, atomic=True)
    assert report == PushReport({}, "", is_atomic=False)
    assert hub.refs.find(REF) is None


def test_what_the_caller_raises_is_not_the_remote_s_fault(hub: Store, story: Story) -> None:
    with pytest.raises(KeyError, match="mine"):
        send_pack(access(hub), story.store.objects, raising(KeyError("mine")))

    with receive_objects(story.store) as incoming, pytest.raises(Refused, match="mine"):
        fetch_pack(access(hub), raising(Refused("mine")), incoming)


@pytest.mark.parametrize(
    ("text", "place", "path"),
    [
        ("me@host:x", "me@host", "x"),
        ("me%40corp@host:x%20y", "me%40corp@host", "x%20y"),
        ("ssh://me%40corp@host/x%20y", "me@corp@host", "/x y"),
    ],
)
def test_settings_of_git_reach_the_connection(
    tmp_path: Path, story: Story, text: str, place: str, path: str
) -> None:
    asked = tmp_path / "asked"
    config = GitConfig({"core.sshcommand": [f"echo >{asked} hello"], "url.x.insteadof": ["host"]})
    reached = Access(RemoteUrl("ssh", text), config, {})
    with receive_objects(story.store) as incoming, pytest.raises(Exception, match="host"):
        fetch_pack(reached, lambda _refs: FetchRequest([], []), incoming)
    words = asked.read_text()
    assert words.startswith("hello ")
    assert words.endswith(f" {place} git-upload-pack '{path}'\n")


@pytest.mark.parametrize("length", [4, 200_000])
def test_ssh_that_is_silent_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """It neither reads nor writes."""
    monkeypatch.setattr(Protocol, "write_pkt_line", lambda self, _line: self.write(b"x" * length))
    pid = tmp_path / "pid"
    ssh = write_program(tmp_path / "an ssh", f"echo $$ >{pid}; printf 00; exec sleep 600")
    reached = Access(RemoteUrl("ssh", "host:x"), GitConfig({}), {"GIT_SSH": ssh}, silence_s=0.3)

    with pytest.raises(RemoteFailed, match="host:x: it did not answer in time"):
        list_refs_there(reached)

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("words", ["", "exec ", "command ", " X=1 "])
def test_any_command_is_run_as_ssh(tmp_path: Path, words: str) -> None:
    ssh = write_program(tmp_path / "ssh", f"touch {tmp_path}/asked")
    reached = Access(RemoteUrl("ssh", "host:x"), GitConfig({}), {"GIT_SSH_COMMAND": words + ssh})
    with pytest.raises(RemoteFailed):
        list_refs_there(reached)
    assert (tmp_path / "asked").exists()


def test_name_that_ssh_would_take_for_an_option_is_refused() -> None:
    reached = Access(RemoteUrl("ssh", "ssh://%2Dx@host/x"), GitConfig({}), {})
    with pytest.raises(RemoteFailed, match="host name is not valid"):
        list_refs_there(reached)


@pytest.mark.parametrize(
    ("url", "environ", "refused"),
    [("ssh", {}, 1), ("ssh", {"GIT_SSH_COMMAND": "mine"}, 0), ("path", {}, 0)],
)
def test_ssh_command_that_only_the_store_names_is_refused(
    story: Story, url: UrlKind, environ: dict[str, str], refused: int
) -> None:
    set_config(f"{story.store.path}/config", "core.sshCommand", "evil")
    store = open_store(story.store.path, environ=os.environ)
    reached = Access(RemoteUrl(url, "me@host:x"), store.config, environ)

    with refuses("setting-not-trusted", match="evil") if refused else nullcontext():
        reached.check_trusted(store)
    trust_agents(store, [describe_command("core.sshCommand", "evil")], store.path)
    reached.check_trusted(store)


def test_each_proxy_command_that_only_the_store_names_is_refused(story: Story) -> None:
    for command in ("evil for host", "trusted"):
        add_config(f"{story.store.path}/config", "core.gitProxy", command)
    store = open_store(story.store.path, environ=os.environ)
    reached = Access(RemoteUrl("git", "git://host/x"), store.config, os.environ)

    trust_agents(store, [describe_command("core.gitProxy", "trusted")], store.path)
    with refuses("setting-not-trusted", match="evil"):
        reached.check_trusted(store)
    trust_agents(store, [describe_command("core.gitProxy", "evil for host")], store.path)
    reached.check_trusted(store)


def test_what_is_said_is_counted_and_what_is_sent_is_not() -> None:
    meter = Meter(10)
    read = meter.counted(BytesIO(b"x" * 100).read)
    for _part in range(5):
        meter.allow(read(8))
    assert read(10) == b"x" * 10
    with refuses("transfer-too-large", match="more than 10 bytes of refs and messages"):
        read(1)


def test_error_output_is_read_up_to_a_limit() -> None:
    first, rest = ErrorOutput(BytesIO(b"fatal: no\n" + b"x" * 1024**2)).readlines()
    assert first == b"fatal: no\n"
    assert len(rest) < 100_000


def test_a_push_reads_of_a_packed_store_what_it_sends(hub: Store, story: Story, git: Git) -> None:
    """Whatever else is in the packs, and however damaged; deltas are sent as they are."""
    path = Path(story.store.path)
    tip = [story.step().commit for _ in range(20)][-1]
    (path / "other").write_bytes(random.Random(1).randbytes(1000))
    other = git("hash-object", "-w", str(path / "other"), cwd=path).strip()
    git("tag", "other", other, cwd=path)
    git("repack", "-adfq", cwd=path)
    damage_entry(path, Oid(other))
    story.store = open_store(story.store.path)

    assert send(hub, story, {REF: tip}).statuses == {REF: None}

    git("fsck", "--strict", cwd=Path(hub.path))
    (pack,) = Path(hub.path).glob("objects/pack/*.idx")
    rows = [
        line.split() for line in git("verify-pack", "-v", str(pack), cwd=pack.parent).splitlines()
    ]
    assert sum(len(row) == len(DELTA_ROW) for row in rows) > 50


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


def test_who_may_not_push_is_not_told_to_check_the_address() -> None:
    with pytest.raises(RemoteFailed) as failed, failures(URL):
        raise GitProtocolError("unexpected http resp 403 for https://host/x")
    assert failed.value.hint == "it does not let you push, or read: ask its owner"


def test_variables_of_git_decide_about_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def refuse(client: Urllib3HttpGitClient, *_words: object, **_options: object) -> None:
        asked.append(client.pool_manager.connection_pool_kw)
        raise ConnectionRefusedError

    monkeypatch.setattr(Urllib3HttpGitClient, "get_refs", refuse)
    config = GitConfig({"http.https://host/x.sslcainfo": ["/other"]})
    for each in ({}, {"GIT_SSL_CAINFO": "/mine", "GIT_SSL_NO_VERIFY": "1"}):
        with pytest.raises(RemoteFailed):
            list_refs_there(Access(URL, config, each))
    told = [(each["ca_certs"], each["cert_reqs"]) for each in asked]
    assert told == [("/other", "CERT_REQUIRED"), ("/mine", "CERT_NONE")]


def test_a_refused_login_has_a_hint() -> None:
    assert "asks" in unauthorized(URL, told=False).message
    assert "refused" in unauthorized(URL, told=True).message
    assert "credential.helper" in (unauthorized(URL, told=True).hint or "")


def test_folder_of_another_user_is_trusted_by_a_command_and_a_server_names_none() -> None:
    said = HangupException([b"fatal: detected dubious ownership in repository at '*'\n"])
    for kind, place in (("path", "/srv/a b.git"), ("ssh", "ssh://host/x")):
        with pytest.raises(RemoteFailed) as failed, failures(RemoteUrl(kind, place)):  # type: ignore[arg-type]  # of a loop
            raise said
        typed = "`git config --global --add safe.directory '/srv/a b.git'`"
        assert (typed in str(failed.value.hint)) == (kind == "path")
        assert ("`ssh HOST git config --global" in str(failed.value.hint)) == (kind == "ssh")
        assert "'*'" not in str(failed.value.hint)


def test_repository_with_sha256_object_ids_is_told(tmp_path: Path, story: Story, git: Git) -> None:
    git("init", "-q", "--bare", "--object-format=sha256", "other.git", cwd=tmp_path)
    other = tmp_path / "other.git"
    asked = Access(RemoteUrl("path", str(other)), GitConfig({}), os.environ)

    with pytest.raises(RemoteFailed, match="it has SHA-256 object ids"):
        send_pack(asked, story.store.objects, lambda _refs: Parcel({REF: story.head.commit}, []))

    tree = git("hash-object", "-w", "-t", "tree", os.devnull, cwd=other)
    commit = git("commit-tree", tree.strip(), "-m", "x", cwd=other).strip()
    git("update-ref", REF, commit, cwd=other)
    with pytest.raises(RemoteFailed, match="it has SHA-256 object ids"):
        list_refs_there(asked)


GIT = which("git")
URL_CREDENTIAL = RemoteUrl("http", "https://host:8443/team/x.git")


@pytest.fixture
def environ() -> dict[str, str]:
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": ""}


@pytest.fixture
def kept(tmp_path: Path, git: Git) -> Path:
    """Return the file in which git stores credentials."""
    path = tmp_path / "kept"
    git("config", "--global", "credential.helper", f"store --file={path}", cwd=tmp_path)
    return path


def test_the_name_in_the_url_chooses(kept: Path, environ: dict[str, str]) -> None:
    kept.write_text("https://me:one@host\nhttps://you:two@host\n")
    found = find_credential(RemoteUrl("http", "https://you@host/x"), GIT, environ)
    assert found is not None
    assert found.password == "two"


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("http://x%0ahost=Host%0aprotocol=https%0ausername=me@evil/t.git", None),
        ("https://me:old@Host/x", "one"),
    ],
)
def test_a_url_gets_what_is_kept_for_its_host(
    kept: Path, environ: dict[str, str], url: str, password: str | None
) -> None:
    kept.write_text("https://me:one@Host\n")
    found = find_credential(RemoteUrl("http", url), GIT, environ)
    assert (found and found.password) == password


def test_without_a_terminal_there_is_no_prompt(kept: Path, environ: dict[str, str]) -> None:
    assert find_credential(URL_CREDENTIAL, GIT, environ) is None
    assert find_credential(URL_CREDENTIAL, None, environ) is None


def test_a_repository_around_us_names_no_helper(
    environ: dict[str, str], tmp_path: Path, git: Git
) -> None:
    git("init", "--quiet", cwd=tmp_path)
    git("config", "credential.helper", f"!touch {tmp_path}/ran; echo password=x", cwd=tmp_path)
    with chdir(tmp_path):
        assert find_credential(URL_CREDENTIAL, GIT, environ) is None
    assert not (tmp_path / "ran").exists()


def test_what_was_right_is_kept_and_what_was_wrong_forgotten(
    kept: Path, environ: dict[str, str]
) -> None:
    credential = Credential("me", "x", "protocol=https\nhost=host\nusername=me\npassword=x\n")
    report_credential("approve", credential, GIT, environ)
    assert kept.read_text() == "https://me:x@host\n"
    report_credential("reject", credential, GIT, environ)
    assert kept.read_text() == ""
    report_credential("approve", credential, None, environ)
    assert kept.read_text() == ""
