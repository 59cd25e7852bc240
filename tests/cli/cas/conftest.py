"""Fixtures of json-cas's verbs: an empty store, and the program."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.session import Session
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store that `cas` uses; it is empty, without fsync."""
    path = create_store(str(tmp_path / "nodes.git")).path
    set_config(f"{path}/config", "uwf.fsync", "false")
    return open_store(path)


@pytest.fixture
def cas(
    store: Store,
    session: Session,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Ran]:
    """Run json-cas in this process: ``cas("put", "Text", "-", fed=b'"hello"')``.

    ``repo=None`` names no store. Bytes that are no UTF-8 come back as surrogates.
    """

    def run_cas(
        *words: str, fed: bytes = b"", repo: str | None = store.path, there: Session = session
    ) -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(fed)))
        named = there if repo is None else there._replace(repo=repo)
        status = run(JSON_CAS, words, prog="json-cas", environ=there.environ, session=named)
        out, err = capsysbinary.readouterr()
        return Ran(status, out.decode(errors="surrogateescape"), err.decode())

    return run_cas
