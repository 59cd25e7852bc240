from pathlib import Path

import pytest
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.pack import load_pack_index

from uwf_git.store.objects.pack_writer import write_index


def test_offsets_of_packs_above_two_gigabytes_are_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "pack.idx")
    offsets = [12, 1 << 31, 5, 7_000_000_000]
    names = [bytes([first]) * 20 for first in (9, 3, 255, 0)]

    write_index(path, names=b"".join(names), crcs=[1, 2, 3, 4], offsets=offsets, pack_sum=b"s" * 20)

    index = load_pack_index(path, DEFAULT_OBJECT_FORMAT)
    index.check()
    found = [(name, offset, crc) for name, offset, crc in index.iterentries()]
    assert found == sorted(zip(names, offsets, [1, 2, 3, 4], strict=True))
    assert index.get_pack_checksum() == b"s" * 20
    index.close()


def test_object_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    names = b"a" * 20 + b"b" * 20 + b"a" * 20
    with pytest.raises(ValueError, match="the object 616161"):
        write_index(
            str(tmp_path / "x.idx"), names=names, crcs=[1] * 3, offsets=[1, 2, 3], pack_sum=b""
        )
