from collections import Counter

from error_codes import list_codes

from uwf_git.errors import (
    AgentFailed,
    BadUsage,
    Conflict,
    Refused,
    StoreDamaged,
    StoreFailed,
    UwfError,
    name_some,
)

STATUSES: dict[type[UwfError], int] = {
    Refused: 1,
    BadUsage: 2,
    AgentFailed: 3,
    Conflict: 4,
    StoreDamaged: 5,
    StoreFailed: 1,
}


def test_exit_status_says_whose_move_it_is() -> None:
    assert {base: base.exit_status for base in STATUSES} == STATUSES


def test_every_base_has_a_code_of_its_own() -> None:
    kinds: list[type[UwfError]] = [UwfError, *STATUSES]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)


def test_a_code_belongs_to_one_module() -> None:
    places = {(each.code, each.path) for each in list_codes()}
    counts = Counter(code for code, _path in places)

    assert [code for code, count in counts.items() if count > 1] == []
    assert len(counts) > 100


def test_names_beyond_the_most_are_counted() -> None:
    assert name_some(["a", "b"]) == name_some(["a", "b"], most=2) == "a, b"
    assert name_some(["a", "b", "c", "d"], most=2) == "a, b and 2 more"
