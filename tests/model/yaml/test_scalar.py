import math

import pytest

from uwf_git.model.yaml.render import resolve_plain

TEXTS = [
    *("nULL", "tRUE", "0o8", "0xG", "-0x3A", "1e", ".", "..", "-", "+", "-.", ".e3", "1.2.3"),
    # What YAML 1.1 reads as something else, and digits that are not ASCII
    *("y", "n", "yes", "no", "No", "on", "off", "12:30", "190:20:30", "2024-01-01"),
    *("2024-01-01 10:00:00", "1_000", "0b101", "=", "<<", "١٢", "12 "),
]
GOLDEN: list[tuple[str, object]] = [
    # YAML 1.2.2, section 10.3.2
    ("", None),
    ("~", None),
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("false", False),
    ("False", False),
    ("FALSE", False),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("-19", -19),
    ("007", 7),
    ("017", 17),
    ("0o7", 7),
    ("0o17", 15),
    ("0x3A", 58),
    ("0xfF", 255),
    ("0.", 0.0),
    ("-0.0", -0.0),
    (".5", 0.5),
    ("+12e03", 12000.0),
    ("-2E+05", -200000.0),
    ("12e-2", 0.12),
    *((text, text) for text in TEXTS),
]


@pytest.mark.parametrize(("text", "value"), GOLDEN)
def test_plain_scalar_follows_yaml_1_2(text: str, value: object) -> None:
    resolved = resolve_plain(text)
    assert (repr(resolved), type(resolved)) == (repr(value), type(value))


@pytest.mark.parametrize("text", [".inf", "+.INF", "-.Inf", "1e999", "9" * 400, "0x" + "f" * 300])
def test_number_beyond_floats_comes_back_infinite(text: str) -> None:
    assert math.isinf(float(resolve_plain(text) or 0))


def test_nan_comes_back_as_nan() -> None:
    assert all(math.isnan(float(resolve_plain(text) or 0)) for text in (".nan", ".NaN", ".NAN"))


def test_number_of_five_thousand_digits_does_not_raise() -> None:
    assert resolve_plain("0" * 5000 + "12") == 12
    assert resolve_plain("-" + "9" * 5000) == -math.inf


def test_large_integer_keeps_every_digit() -> None:
    assert resolve_plain("12345678901234567890") == 12345678901234567890
