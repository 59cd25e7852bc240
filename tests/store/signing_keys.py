"""Make real signing keys by the programs that git uses, and the git settings that name them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, open_store
from uwf_git.store.trust import describe_command, trust_agents

needs_ssh = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen on this machine"
)
needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="there is no gpg here")
needs_gpgsm = pytest.mark.skipif(shutil.which("gpgsm") is None, reason="there is no gpgsm here")

_CERTIFICATE = """\
Key-Type: RSA
Key-Length: 2048
Key-Usage: sign
Serial: random
Name-DN: CN=Ada
Name-Email: ada@example.com
"""

Git = Callable[..., str]


def make_ssh_key(path: Path, *, passphrase: str = "") -> Path:
    """Make a key pair; *path* is the private half, `path.pub` the public one."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Return an ssh key that can be used without a passphrase."""
    return make_ssh_key(tmp_path / "key")


def public_half(key: Path) -> str:
    """Return the public key as a line of text."""
    return key.with_name(f"{key.name}.pub").read_text().strip()


def with_settings(store: Store, **settings: str) -> Store:
    """Set settings of git's (`commit__gpgsign="true"`) in the store's config; open it anew.

    The user trusts them.
    """
    named = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in named.items():
        set_config(os.path.join(store.path, "config"), name, value)
    opened = open_store(store.path, environ=os.environ)
    trust_agents(opened, [describe_command(*each) for each in named.items()], opened.path)
    return opened


def signed_by(store: Store, key: Path | str, **settings: str) -> Store:
    """Let the commits of *store* be signed by an ssh key."""
    return with_settings(
        store, commit__gpgsign="true", gpg__format="ssh", user__signingkey=str(key), **settings
    )


def trusting(store: Store, place: Path, *lines: str, name: str = "signers") -> Store:
    """Let *store* trust the *lines* of a file of allowed signers."""
    file = place / name
    file.write_text("".join(f"{line}\n" for line in lines))
    return with_settings(store, gpg__ssh__allowedSignersFile=str(file))


def signed_and_trusted(
    store: Store, key: Path, place: Path, *, signer: str = "ada@example.com"
) -> Store:
    """Let the commits of *store* be signed by *key*, and *store* trust it as that of *signer*."""
    return trusting(signed_by(store, key), place, f"{signer} {public_half(key)}")


@pytest.fixture
def trusted(store: Store, key: Path, tmp_path: Path) -> Store:
    """Return a store whose commits are signed by a key that it trusts."""
    return signed_and_trusted(store, key, tmp_path)


@contextmanager
def ssh_agent(socket: Path, *keys: Path) -> Iterator[dict[str, str]]:
    """Run an ssh-agent that holds *keys*; return the environment in which it is found."""
    environ = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert agent.stdout is not None
        # It says where its socket is once that is there.
        agent.stdout.readline()
        for key in keys:
            subprocess.run(["ssh-add", "-q", str(key)], env=environ, check=True)
        yield environ
    finally:
        agent.terminate()
        agent.communicate()


@contextmanager
def gpg_home(place: Path, *names: str, expires: str = "never") -> Iterator[dict[str, str]]:
    """Make a home of gpg's with a key for each of *names*; return the environment that finds it."""
    # A socket's path may have 100 bytes or so, and pytest's are long.
    home = place / "g"
    home.mkdir(mode=0o700)
    environ = {**os.environ, "GNUPGHOME": str(home)}
    try:
        for name in names:
            words = ["--quick-gen-key", f"{name} <{name.lower()}@example.com>", "ed25519", "sign"]
            gpg(environ, "--batch", "--passphrase", "", *words, expires)
        yield environ
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environ, check=True)


def make_certificate(environ: dict[str, str]) -> str:
    """Return the fingerprint of a new X.509 certificate in a home of gpg's, which trusts it."""
    home = Path(environ["GNUPGHOME"])
    (home / "gpg-agent.conf").write_text("allow-loopback-pinentry\n")
    (home / "gpgsm.conf").write_text("disable-crl-checks\n")
    (home / "order").write_text(_CERTIFICATE)
    unlocked = ("gpgsm", "--batch", "--pinentry-mode", "loopback", "--passphrase-fd", "0")
    for words in (
        (*unlocked, "-o", str(home / "made"), "--gen-key", str(home / "order")),
        ("gpgsm", "--batch", "--import", str(home / "made")),
    ):
        subprocess.run(
            words, env=environ, check=True, stdin=subprocess.DEVNULL, capture_output=True
        )
    argv = ["gpgsm", "-K", "--with-colons"]
    listed = subprocess.run(argv, env=environ, check=True, capture_output=True, text=True).stdout
    key = next(line.split(":")[9] for line in listed.split("\n") if line.startswith("fpr:"))
    (home / "trustlist.txt").write_text(f"{key} S relax\n")
    subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=environ, check=True)
    return key


def gpg(environ: dict[str, str], *words: str, given: str = "") -> str:
    """Run gpg; a failure shows what it said."""
    ran = subprocess.run(
        ["gpg", *words], env=environ, input=given, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
