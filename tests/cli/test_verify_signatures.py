"""`uwf verify --signatures`, and steps with git's settings for signed commits."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli.program import Uwf
from store.signing_keys import (
    Git,
    make_ssh_key,
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


def test_signers_are_reported_when_asked_for(signing: Uwf) -> None:
    thread = signing.begun()
    signing.json("thread", "step", thread)

    assert "signatures" not in signing.json("verify")
    document = signing.json("verify", "--signatures", thread)

    assert document["problems"] == []
    assert [(row["event"], row["status"], row["signer"]) for row in document["signatures"]] == [
        ("step", "good", "ada"),
        ("start", "good", "ada"),
    ]


def test_text_has_a_line_for_each_commit(signing: Uwf) -> None:
    signing.begun()

    ran = signing("verify", "--signatures", "--format", "text")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("ok: ")
    _ok, blank, header, workflow, start = ran.out.splitlines()
    assert (blank, header.split()[:2]) == ("", ["STATUS", "SIGNER"])
    assert workflow.split()[3] == "workflows/demo"
    assert start.endswith("start: Do it.")


def test_unknown_signer_is_no_problem_and_has_a_hint_how_to_know_them(
    signing: Uwf, tmp_path: Path
) -> None:
    trusting(store_of(signing), tmp_path)
    thread = signing.begun()

    ran = signing("verify", "--signatures", thread)

    assert ran.status == 0
    assert [row["status"] for row in json.loads(ran.out)["signatures"]] == ["untrusted"]
    assert ran.err.startswith(
        "note: untrusted: its key is not among the allowed signers; to trust "
    )


def test_forged_step_is_a_problem(signing: Uwf, git: Git) -> None:
    thread = signing.begun()
    signing.json("thread", "step", thread)
    repository = Path(store_of(signing).path)
    ref = f"refs/threads/{thread}"
    raw = git("cat-file", "commit", ref, cwd=repository).replace("What was", "What never was")
    forged = git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw, cwd=repository).strip()
    git("update-ref", ref, forged, cwd=repository)

    assert len(json.loads(signing("verify", thread).out)["problems"]) == 1
    ran = signing("verify", "--signatures", thread)

    assert ran.status == 5
    said, problem = json.loads(ran.out)["problems"]
    assert said["message"].startswith("its subject is 'writer: What never was said.', ")
    assert (problem["commit"], problem["ref"]) == (forged, ref)
    assert problem["message"].startswith(f"commit {forged} has a signature that is bad: ")
    assert ran.err.startswith("error: 2 problems were found\n")


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

    assert (ran.status, ran.out) == (1, "")
    assert "gpg.ssh.allowedSignersFile names /none, which is not a file" in ran.err


def test_step_that_cannot_be_signed_is_reported_and_not_lost(signing: Uwf, tmp_path: Path) -> None:
    thread = signing.begun()
    locked = make_ssh_key(tmp_path / "locked", passphrase="secret")
    signed_by(store_of(signing), locked)

    ran = signing("thread", "step", thread, "--format", "json")

    error = json.loads(ran.err.splitlines()[-1])["error"]
    assert (ran.status, ran.out, error["code"]) == (1, "", "cannot-sign")
    assert "nothing was lost" in error["hint"]
    subprocess.run(
        ["git", "-C", store_of(signing).path, "config", "commit.gpgsign", "false"], check=True
    )
    assert signing.json("thread", "step", thread)["role"] == "writer"


@pytest.mark.parametrize("form", ["json", "yaml", "text"])
def test_name_of_a_signer_does_nothing_to_a_terminal(
    form: str, uwf: Uwf, key: Path, tmp_path: Path
) -> None:
    name = '"eve\x1b[2J\u202egro\u2028x"'
    store = signed_by(store_of(uwf), key)
    trusting(store, tmp_path, f"{name} {public_half(key)}")
    uwf.begun()

    ran = uwf("verify", "--signatures", "--format", form)

    assert (ran.status, "eve" in ran.out) == (0, True)
    assert all(each.isprintable() for each in (ran.out + ran.err).split("\n"))
