"""`uwf verify --signatures`, and steps with git's settings for signed commits."""

import json
import os
from pathlib import Path

import pytest
from cli.program import Uwf
from store.signing_keys import (
    Git,
    needs_ssh,
    public_half,
    signed_and_trusted,
    signed_by,
    trusting,
    with_settings,
)

from uwf_git.store.store import Store, open_store

pytestmark = needs_ssh


def store_of(uwf: Uwf) -> Store:
    return open_store(str(uwf.session.repo), environ=os.environ)


@pytest.fixture
def signing(uwf: Uwf, key: Path, tmp_path: Path) -> Uwf:
    signed_and_trusted(store_of(uwf), key, tmp_path, signer="ada")
    return uwf


def test_each_commit_is_reported_once_for_all_its_refs(signing: Uwf, git: Git) -> None:
    thread = signing.begun()
    signing.json("thread", "step", thread)
    repository = Path(store_of(signing).path)
    tip = git("rev-parse", f"refs/threads/{thread}", cwd=repository).strip()
    git("update-ref", f"refs/archive/{thread}", f"{tip}", cwd=repository)
    git("update-ref", f"refs/uwf/kept/{thread}/{tip}", tip, cwd=repository)

    rows = json.loads(signing("verify", "--signatures").out)["signatures"]

    assert len(rows) == len({row["commit"] for row in rows}) == 3


def test_setting_that_names_nothing_is_reported(signing: Uwf) -> None:
    signing.begun()
    with_settings(store_of(signing), gpg__ssh__allowedSignersFile="/none")

    ran = signing("verify", "--signatures")
    ran.refused(1, "gpg.ssh.allowedSignersFile names /none, which is not a file")


@pytest.mark.parametrize("form", ["json", "yaml", "text"])
def test_name_of_a_signer_does_nothing_to_a_terminal(
    form: str, uwf: Uwf, key: Path, tmp_path: Path
) -> None:
    name = '"eve\x1b[2J\u202egro\u2028x"'
    trusting(signed_by(store_of(uwf), key), tmp_path, f"{name} {public_half(key)}")
    uwf.begun()

    ran = uwf("verify", "--signatures", "--format", form)

    assert (ran.status, "eve" in ran.out) == (0, True)
    assert all(each.isprintable() for each in (ran.out + ran.err).split("\n"))
