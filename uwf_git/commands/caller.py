"""The caller of a command: clock, environment and directory, passed in as plain values."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from uwf_git.store.git.config import refuse_mirror
from uwf_git.store.git.program import find_committer
from uwf_git.store.objects.commit import Signing
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import say_signing


class Caller(NamedTuple):
    now_ms: Callable[[], int]
    """The clock: milliseconds since 1970."""

    environ: Mapping[str, str]
    """The environment, for agents and for git's identity variables."""

    cwd: str

    def signing(self, store: Store, *, author: bytes | None = None) -> Signing:
        """Return a commit's author (by default the committer), committer, time and signer."""
        refuse_mirror(store.config)
        committer = find_committer(store.config, self.environ).identity
        return Signing(author or committer, committer, self.now_ms(), self._sign(store, committer))

    def check_signing(self, store: Store) -> None:
        """Check, before an agent is run, that commits can be made, and signed if they have to be.

        A locked key is found only by signing.
        """
        refuse_mirror(store.config)
        self._sign(store, find_committer(store.config, self.environ).identity)

    def _sign(self, store: Store, committer: bytes) -> Callable[[bytes], bytes] | None:
        if not store.config.get_flag("commit.gpgsign", default=False):
            return None
        from uwf_git.store.signatures import build_signer  # noqa: PLC0415 (costs 5 ms, and few commits are signed)

        sign = build_signer(store, self.environ, committer=committer)
        name = store.config.get("gpg.format") or "openpgp"

        def sign_and_say(payload: bytes) -> bytes:
            # A person may have to touch a key or type a passphrase.
            with say_signing(f"by {name}"):
                return sign(payload)

        return sign_and_say
