"""Refs to blobs: their ids are git's, and a parcel holds what its refs need."""

import subprocess

from uwf_git.store.remotes.incoming import build_parcel, hold_blobs, name_blob


def test_the_parcel_of_a_blob_has_gits_name_for_it() -> None:
    content = b'{"host": "a"}'
    argv = ["git", "hash-object", "--stdin"]
    ran = subprocess.run(argv, input=content, check=True, capture_output=True)
    parcel = build_parcel({"refs/claims/A": content, "refs/claims/B": None})
    assert parcel.changes == {"refs/claims/A": ran.stdout.decode().strip(), "refs/claims/B": None}
    assert name_blob(content) == parcel.changes["refs/claims/A"]
    (needed,) = parcel.objects
    assert hold_blobs([content])[needed].as_raw_string() == content
