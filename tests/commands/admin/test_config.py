from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.admin.config import (
    SETTINGS,
    full_name,
    get_store_setting,
    list_settings,
    set_setting,
)
from uwf_git.plan.settings import load_plan_settings
from uwf_git.store.trust import describe_command, is_trusted, list_trusted

Git = Callable[..., str]


@pytest.mark.parametrize("name", ["agent", "uwf.agent", "UWF.Agent", "AGENT"])
def test_name_may_leave_out_the_front_and_the_case(name: str) -> None:
    assert full_name(name) == "uwf.agent"


def test_name_that_means_nothing_is_refused_with_one_that_does() -> None:
    with refuses("no-such-setting") as caught:
        full_name("agnet")

    assert caught.value.exit_status == 2
    assert "did you mean uwf.agent" in (caught.value.hint or "")
    assert "uwf.maxFetchObjects" not in (caught.value.hint or "")


def test_trust_is_no_plain_setting(world: World) -> None:
    with refuses("no-such-setting"):
        set_setting(world.store, "uwf.trustedAgent", '{"command":"evil"}')


@pytest.mark.parametrize(
    "value", ["uwf-mock x", ' "quoted" # ; \\ ', "line\nbreak", "tab\there", "日本", ""]
)
def test_value_comes_back_as_it_was_set(value: str, world: World) -> None:
    set_setting(world.store, "agent", value)
    world.reopen()

    assert get_store_setting(world.store, "agent").value == value


def test_set_keeps_the_other_lines_of_the_file(world: World) -> None:
    config = Path(world.store.path) / "config"
    config.write_text(config.read_text() + "# mine\n[other]\n\tkey = 1\n")

    set_setting(world.store, "agent", "uwf-mock x")

    written = config.read_text().splitlines()
    assert {"# mine", "[other]", "\tkey = 1"} <= set(written)


def test_setting_without_a_value_is_refused(world: World) -> None:
    with refuses("not-set", match=r"uwf\.agent is not set"):
        get_store_setting(world.store, "agent")


@pytest.mark.parametrize("value", ["maybe", "2", ""])
def test_flag_accepts_the_values_of_git(value: str, world: World) -> None:
    with refuses("bad-value", match=r"uwf\.store cannot be"):
        set_setting(world.store, "store", value)


def test_command_that_cannot_run_is_refused_when_it_is_set(world: World) -> None:
    with pytest.raises(BadCommand):
        set_setting(world.store, "agent", "'unclosed")


def test_list_has_every_setting_with_its_meaning(world: World) -> None:
    set_setting(world.store, "agent", "uwf-mock x")
    world.reopen()

    listed = list_settings(world.store)

    assert [each.name for each in listed] == list(SETTINGS)
    assert all(each.meaning for each in listed)
    assert listed[0].value == "uwf-mock x"


def test_what_is_seldom_set_is_listed_once_it_is_set(world: World) -> None:
    set_setting(world.store, "maxBlobSize", "1m")
    world.reopen()

    listed = {each.name for each in list_settings(world.store, with_seldom=False)}

    assert {"uwf.agent", "uwf.maxBlobSize", "uwf.plan.agent"} <= listed
    assert listed.isdisjoint({"uwf.signTimeout", "uwf.maxFetchRefs", "uwf.plan.port"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("retries", "3"), ("backoff", "0.5")],
)
def test_number_that_means_something_is_set(name: str, value: str, world: World) -> None:
    assert set_setting(world.store, name, value).value == value


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retries", "often", "bad-retry-setting"),
        ("backoff", "-1", "bad-retry-setting"),
        ("maxBlobSize", "big", "bad-receive-limit"),
    ],
)
def test_number_that_means_nothing_is_refused_when_it_is_set(
    name: str, value: str, error: str | type[Exception], world: World
) -> None:
    with refuses(error):
        set_setting(world.store, name, value)
    world.reopen()
    with refuses("not-set"):
        get_store_setting(world.store, name)


def test_command_that_is_set_here_is_trusted(world: World) -> None:
    set_setting(world.store, "agent", "./agent", cwd=str(world.place))
    assert is_trusted(world.store, {"command": "./agent"}, str(world.place))
    assert not is_trusted(world.store, {"command": "./agent"}, "/elsewhere")
    set_setting(world.store, "onEvent", "./log")
    listener = describe_command("uwf.onEvent", "./log")
    assert is_trusted(world.store, listener, world.store.path)
    set_setting(world.store, "agent", "")
    assert len(list_trusted(world.store)) == 2


def test_setting_of_plans_is_checked_and_trusted_when_it_is_set(world: World) -> None:
    with refuses("bad-plan-setting"):
        set_setting(world.store, "plan.planDir", "../elsewhere")
    set_setting(world.store, "plan.planDir", "plans", cwd=str(world.place))
    set_setting(world.store, "plan.agent", "claude", cwd=str(world.place))
    world.reopen()

    settings = load_plan_settings(world.store, str(world.place))

    assert (settings.plan_dir, settings.agent) == ("plans", "claude")
