"""Contents of a lock file that name no holder."""

GARBAGE = [
    b"",
    b"\0" * 100,
    b"\xff\xfe\xfd",
    b"{",
    b"null",
    b"5",
    b'["pid", 7]',
    b"1" * 9_000,
    b'{"pid": 7}\n{"pid": 8}\n',
    b"[" * 9_000,
]
