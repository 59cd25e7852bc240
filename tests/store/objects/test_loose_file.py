"""Loose files are read as git wrote them, and no damage goes unnoticed."""

import itertools
import os
import zlib

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.loose import damage, loose_file, write_loose

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.objects import DurableObjects, read_loose_file, refuse_garbage
from uwf_git.store.store import Store


def blob(content: bytes) -> Blob:
    return Blob.from_string(content)


def test_only_the_object_of_that_name_and_of_that_length_is_read(store: Store) -> None:
    made = blob(b"content")
    write_loose(store, [made])
    path = str(loose_file(store, made.id))
    assert read_loose_file(path, made.id, most_bytes=7) == (3, b"content")
    assert read_loose_file(path, b"1" * 40, most_bytes=7) is None
    # The header counts with the content, so a few bytes more may pass.
    assert read_loose_file(path, made.id, most_bytes=-20) is None
    assert read_loose_file(path + "0", made.id, most_bytes=7) is None


def test_garbage_behind_an_object_is_refused(store: Store) -> None:
    made = blob(os.urandom(3_000_000))
    write_loose(store, [made])
    path = loose_file(store, made.id)
    refuse_garbage(str(path))
    refuse_garbage(str(path) + "0")
    damage(path, path.read_bytes() + b"0")
    assert read_loose_file(str(path), made.id, most_bytes=3_000_000) is None
    with pytest.raises(ValueError, match="garbage"):
        refuse_garbage(str(path))


def test_a_loose_object_with_any_byte_changed_is_damaged_or_the_same(store: Store) -> None:
    """Some bytes of the zlib stream say nothing; every other change is noticed."""
    made = blob(b"the content of a node, the content of a node")
    write_loose(store, [made])
    path = loose_file(store, made.id)
    whole = path.read_bytes()
    noticed = 0
    for position, change in itertools.product(range(len(whole)), (1, 0x80, 0xFF)):
        spoiled = bytearray(whole)
        spoiled[position] ^= change
        damage(path, bytes(spoiled))
        told = what_reading_tells(store, made.id)
        assert told == made or made.id.decode() in str(told)
        noticed += told != made
    assert noticed > len(whole) * 2


def what_reading_tells(store: Store, oid: ObjectID) -> ShaFile | str:
    try:
        return store.objects[oid]
    except StoreDamaged as error:
        return error.message


def test_a_loose_object_cut_short_is_damaged(store: Store) -> None:
    made = blob(os.urandom(100))
    write_loose(store, [made])
    whole = loose_file(store, made.id).read_bytes()
    for length in range(len(whole)):
        damage(loose_file(store, made.id), whole[:length])
        # The last four bytes are a sum that zlib does not insist on having.
        if length < len(whole) - 4:
            with pytest.raises(StoreDamaged, match=f"{made.id.decode()} cannot be read: .") as told:
                store.objects[made.id]
            assert told.value.__cause__ is not None
            why = str(told.value.__cause__) or type(told.value.__cause__).__name__
            assert " ".join(why.split())[:100] in told.value.message


@given(content=st.binary(max_size=60), compressed=st.booleans())
def test_whatever_is_in_a_loose_file_is_the_object_or_damage(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, *, compressed: bool
) -> None:
    directory = tmp_path_factory.mktemp("objects")
    path = directory / "ab" / ("c" * 38)
    path.parent.mkdir()
    path.write_bytes(zlib.compress(content) if compressed else content)
    with refuses("damaged-object"):
        DurableObjects(str(directory))[ObjectID(b"ab" + b"c" * 38)]


def test_object_whose_loose_file_is_empty_is_there_and_damaged(store: Store) -> None:
    made = blob(b"content")
    write_loose(store, [made])
    damage(loose_file(store, made.id), b"")
    assert made.id in store.objects
    with refuses("damaged-object"):
        store.objects[made.id]
