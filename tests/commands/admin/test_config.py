import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.admin import get_store_setting, list_settings, set_setting
from uwf_git.plan.settings import load_plan_settings
from uwf_git.store.trust import describe_command, is_trusted, list_trusted


@pytest.mark.parametrize(
    "value", ["uwf-mock x", ' "quoted" # ; \\ ', "line\nbreak", "tab\there", "日本", ""]
)
def test_value_comes_back_as_it_was_set(value: str, world: World) -> None:
    told = set_setting(world.store, "agent", value)
    world.reopen()

    assert get_store_setting(world.store, "agent") == told
    assert (told.name, told.value) == ("uwf.agent", value)


@pytest.mark.parametrize("value", ["true", "false", "yes", "no", "On", "off", "1", "0"])
def test_flag_is_set_in_the_words_of_git(value: str, world: World) -> None:
    assert set_setting(world.store, "fsync", value).value == value


def test_what_is_seldom_set_is_listed_once_it_is_set(world: World) -> None:
    set_setting(world.store, "maxBlobSize", "1m")
    world.reopen()

    listed = {each.name for each in list_settings(world.store, with_seldom=False)}

    assert {"uwf.agent", "uwf.maxBlobSize", "uwf.plan.agent"} <= listed
    assert listed.isdisjoint({"uwf.signTimeout", "uwf.maxFetchRefs", "uwf.plan.port"})


def test_setting_that_is_meant_is_named_without_a_guess(world: World) -> None:
    for name, meant in (("uwf.formt", "did you mean uwf.format? "), ("nosuch", "")):
        with refuses("no-such-setting") as refused:
            set_setting(world.store, name, "1")
        assert refused.value.hint == f"{meant}`uwf config list --all` shows every setting"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retries", "often", "bad-retry-setting"),
        ("backoff", "-1", "bad-retry-setting"),
        ("maxBlobSize", "big", "bad-receive-limit"),
        ("signTimeout", "0", "unfit-setting"),
        ("format", "xml", "bad-value"),
        ("recordFiles", "maybe", "bad-value"),
    ],
)
def test_value_that_means_nothing_is_refused_when_it_is_set(
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
    set_setting(world.store, "plan.verifier", "")
    world.reopen()

    settings = load_plan_settings(world.store, str(world.place))

    assert (settings.plan_dir, settings.agent) == ("plans", "claude")
