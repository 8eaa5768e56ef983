"""The settings table: valid values in a file and in the environment, and errors for all others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiboss.core.errors import BadConfig, BadSetting, UnknownSetting
from hiboss.core.setting_values import MIB, Setting
from hiboss.core.settings import DEFAULTS, SECTIONS, TABLE, Configuration, describe
from tests.support.raising import raised
from tests.support.sweeps import sweep

BY_NAME = {str(setting): setting for setting in TABLE}
NUMBERS = [setting for setting in TABLE if isinstance(setting.default, (int, float))]
SIZES = [setting for setting in NUMBERS if setting.name.endswith("bytes")]
# A page cannot be longer than the longest page allowed, so the two are tried together.
BESIDE = {
    "limits.page_size": {"limits.page_size_limit": 1000},
    "limits.page_size_limit": {"limits.page_size": 1},
}


def toml(values: Mapping[str, Any]) -> str:
    """A file with these settings, written `section.key`."""
    lines = []
    for name, value in values.items():
        section, key = name.split(".")
        lines.append(
            f"[{section}]\n{key} = {value}\n" if len(values) == 1 else f"{section}.{key} = {value}\n"
        )
    return "".join(lines)


class Place:
    """A home's config.toml, and an environment."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "config.toml"

    def read(self, text: str | bytes | None = None, **environ: str) -> Configuration:
        if text is not None:
            self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Configuration(str(self.file), environ)

    def refused(self, text: str | bytes | None = None, **environ: str) -> BadConfig:
        return raised(BadConfig, self.read, text, **environ)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def value_of(configuration: Configuration, name: str) -> Any:
    return getattr(configuration.settings, BY_NAME[name].name)


def beyond(setting: Setting) -> list[Any]:
    step = 1 if isinstance(setting.default, int) else 0.001
    return [setting.least - step, setting.most + step, -setting.most]


# --- every setting -------------------------------------------------------------------


def test_without_a_file_and_an_environment_everything_is_as_declared(place: Place) -> None:
    found = place.read(HOME="/home/ada", HIBOSS_HOME="/h", HIBOSS_TOKEN="hba_x", HIBOSS_CRASH_AT="x")
    assert found.settings == DEFAULTS and set(found.sources.values()) == {"default"}
    assert place.read("").settings == place.read("# nothing\n").settings == DEFAULTS


def test_a_number_at_its_bounds_is_taken_from_file_and_environment(place: Place) -> None:
    with sweep() as row:
        for setting, bound in product(NUMBERS, ("least", "most")):
            name, beside = str(setting), BESIDE.get(str(setting), {})
            with row(f"{name} {bound}"):
                value = type(setting.default)(getattr(setting, bound))
                assert setting.variable == f"HIBOSS_{name.replace('.', '_').upper()}"
                for found, source in (
                    (
                        place.read(toml({**beside, name: value})),
                        f"{place.file} [{setting.section}] {setting.key}",
                    ),
                    (place.read(toml(beside), **{setting.variable: f" {value} "}), setting.variable),
                ):
                    assert value_of(found, name) == value
                    assert type(value_of(found, name)) is type(setting.default)
                    assert found.sources[setting.name] == source


def test_a_number_beyond_its_bounds_is_refused_and_told_what_would_be_right(place: Place) -> None:
    with sweep() as row:
        for setting, value in ((one, value) for one in NUMBERS for value in beyond(one)):
            with row(f"{setting} {value}"):
                for error, where in (
                    (
                        place.refused(toml({str(setting): value})),
                        f"{place.file} [{setting.section}] {setting.key} is",
                    ),
                    (place.refused("", **{setting.variable: str(value)}), f"{setting.variable} is"),
                ):
                    assert isinstance(error, BadSetting)
                    assert error.message.startswith(where) and str(value) in error.message
                    assert f"number from {setting.least:.15g} to {setting.most:.15g}" in error.message


WRONG = ["true", "false", "{}", "{ a = 1 }", "1979-05-27", "[1]", "[[]]", "nan", "inf", '["a", 1]']
WRONG_OF_TYPE: dict[type, list[str]] = {
    int: [
        *("1.0", '"1.0"', '"ten"', '""', '"-1"', '"1 2"', '"0x10"', '"4 MB"', '"1e2"', "[]", '"1_0"', '"٣"'),
    ],
    float: ['"soon"', '""', '"nan"', '"inf"', '"-1"', "-0.1", '"1 B"', "[]", '"1_0"', '"1e1"', '"٣"'],
    str: ["1", "1.5", "[]", '"a\\u0000b"', '"a\\nb"'],
    tuple: ["1", "1.5", '"/a,/b"', '[""]', '["/a", ""]', '["/a\\u0000b"]', '"a"'],
}
WRONG_CHOICE = ["1", '"INFO"', '"loud"', '""', "[]", '" info"']
WRONG_URL = ['""', '"a"', '"ftp://a"', '"http://"', '"http://a b"']
WRONG_PATHS = ['["a"]', '["./a"]', '[" /a"]']


def wrong(setting: Setting) -> list[str]:
    """Return values, as a file has them, that this setting does not take."""
    more = WRONG_URL if setting.key.endswith("_url") else []
    more = WRONG_PATHS if setting.name == "forbidden_paths" else more
    return [*WRONG, *(WRONG_CHOICE if setting.choices else WRONG_OF_TYPE[type(setting.default)]), *more]


def test_a_value_of_another_type_is_refused(place: Place) -> None:
    with sweep() as row:
        for setting, value in ((one, value) for one in TABLE for value in wrong(one)):
            with row(f"{setting} = {value}"):
                error = place.refused(toml({str(setting): value}))
                assert isinstance(error, BadSetting)
                assert (
                    setting.wants in error.message and f"[{setting.section}] {setting.key}" in error.message
                )


@pytest.mark.parametrize("value", ["9" * 5_000, "0x" + "f" * 5_000, "-" + "9" * 400])
@pytest.mark.parametrize("name", ["limits.page_size", "store.lock_wait_seconds", "log.level"])
def test_a_number_without_end_is_refused_like_any_other(place: Place, name: str, value: str) -> None:
    assert len(place.refused(toml({name: value})).message) < 400 + len(str(place.file))


def test_a_unit_stands_with_or_without_a_blank_and_only_where_bytes_are_counted(place: Place) -> None:
    for text in ('"4 MiB"', '"4MiB"', str(4 * MIB)):
        assert place.read(toml({"limits.text_bytes": text})).settings.text_bytes == 4 * MIB
    assert place.read(toml({"limits.text_bytes": '"1 GiB"'})).settings.text_bytes == 1024 * MIB
    for text in ('"4  MiB"', '"4 mib"', '"4 M"', '"0.5 MiB"', '"MiB"', '"2 GiB"'):
        assert "4 MiB" in place.refused(toml({"limits.text_bytes": text})).message
    for name in ("limits.page_size", "log.files", "store.writer_queue", "store.lock_wait_seconds"):
        place.refused(toml({name: '"1 KiB"'}))


def test_a_choice_is_one_of_the_words_offered(place: Place) -> None:
    for word in BY_NAME["log.level"].choices:
        assert place.read(toml({"log.level": f'"{word}"'})).settings.log_level == word
        assert place.read("", HIBOSS_LOG_LEVEL=word).settings.log_level == word
    assert "one of debug, info, warning, error" in place.refused("", HIBOSS_LOG_LEVEL="loud").message


@pytest.mark.parametrize(
    ("written", "expected"),
    [("/a", ("/a",)), ("/a,/b", ("/a", "/b")), (" /a , ,~/b c,", ("/a", "~/b c")), ("", ()), (",", ())],
)
def test_a_list_in_the_environment_is_separated_by_commas(
    place: Place, written: str, expected: tuple[str, ...]
) -> None:
    assert place.read("", HIBOSS_ATTACHMENTS_FORBIDDEN_PATHS=written).settings.forbidden_paths == expected


@pytest.mark.parametrize("written", ["a", "/a,b", "/tmp/\udcff"])
def test_a_path_that_is_relative_or_no_text_is_refused(place: Place, written: str) -> None:
    error = place.refused("", HIBOSS_ATTACHMENTS_FORBIDDEN_PATHS=written)
    assert isinstance(error, BadSetting) and "begin with / or ~" in error.message and error.message.encode()


def test_a_list_in_the_file_is_a_list_of_texts(place: Place) -> None:
    found = place.read('[attachments]\nforbidden_paths = ["/a,b", "~/c"]\n')
    assert found.settings.forbidden_paths == ("/a,b", "~/c")
    assert place.read("[attachments]\nforbidden_paths = []\n").settings.forbidden_paths == ()


@pytest.mark.parametrize("what", ["adapter", "provider"])
def test_modules_of_your_own_are_a_list_in_file_and_environment(place: Place, what: str) -> None:
    name, setting = f"{what}_modules", f"{what}s.modules"
    assert getattr(place.read("").settings, name) == ()
    found = place.read(f'[{what}s]\nmodules = ["hiboss.testing.scripted_adapter", "mine"]\n')
    assert getattr(found.settings, name) == ("hiboss.testing.scripted_adapter", "mine")
    found = place.read(None, **{f"HIBOSS_{what.upper()}S_MODULES": " mine ,"})
    assert getattr(found.settings, name) == ("mine",)
    assert {one["setting"]: one["value"] for one in describe(found)}[setting] == ["mine"]
    error = raised(BadSetting, place.read, f"[{what}s]\nmodules = [5]\n")
    assert f"[{what}s] modules" in error.message and "Python modules" in error.message


@pytest.mark.parametrize("hours", ["22-7", "22:00-24:00", "22:00-22:00", "at night"])
def test_quiet_hours_are_two_different_times_or_nothing(place: Place, hours: str) -> None:
    assert place.read(toml({"boss.quiet_hours": '"22:00 - 7:00"'})).settings.quiet_hours == "22:00-07:00"
    assert place.read(None, HIBOSS_BOSS_QUIET_HOURS="").settings.quiet_hours == ""
    error = place.refused(toml({"boss.quiet_hours": f'"{hours}"'}))
    assert isinstance(error, BadSetting) and hours in error.message
    assert "two different times from 00:00 to 23:59, like 22:00-07:00, or nothing" in error.message


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(place: Place) -> None:
    found = place.read(toml({"limits.page_size": 20, "log.level": '"debug"'}), HIBOSS_LIMITS_PAGE_SIZE="30")
    assert (found.settings.page_size, found.settings.log_level, found.settings.recipients) == (
        30,
        "debug",
        100,
    )
    assert found.sources["page_size"] == "HIBOSS_LIMITS_PAGE_SIZE"
    assert found.sources["log_level"] == f"{place.file} [log] level"
    assert found.sources["recipients"] == "default"


def test_what_the_environment_overrules_must_still_be_right(place: Place) -> None:
    place.refused(toml({"limits.page_size": -1}), HIBOSS_LIMITS_PAGE_SIZE="30")


def test_a_page_longer_than_the_longest_is_refused_in_words_about_both(place: Place) -> None:
    for error in (
        place.refused(toml({"limits.page_size": 101})),
        place.refused(toml({"limits.page_size_limit": 9})),
        place.refused("", HIBOSS_LIMITS_PAGE_SIZE="101"),
    ):
        assert "page_size" in error.message.replace("page_size_limit", "").lower()
        assert "limits.page_size_limit" in error.message
    assert place.read(toml({"limits.page_size": 100})).settings.page_size == 100


# --- unknown settings ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[limits]\npage_sizes = 5",
            "limits.page_sizes, but there is no such setting (did you mean limits.page_size",
        ),
        ("[limits]\nPage_Size = 5", "did you mean limits.page_size?"),
        ("[log]\nlog_level = 'info'", "did you mean log.level?"),
        ("[limit]\npage_size = 5", "[limit], but there is no such setting (did you mean limits?)"),
        ("[zzz]\n", "[zzz], but there is no such setting; hiboss"),
        ("page_size = 5", "it belongs in a section: limits.page_size"),
        ("level = 'info'", "it belongs in a section: log.level"),
        ("log_level = 'info'", "it belongs in a section: log.level"),
        ("zzz = 5", "zzz, but there is no such setting; hiboss"),
        ("limits = 5", "limits"),
        ("[[limits]]\npage_size = 5", "limits"),
        ("[limits.page]\nsize = 5", "limits.page,"),
        ('["limits.page_size"]\n', "limits.page_size"),
    ],
)
def test_a_name_nobody_knows_is_refused_with_the_nearest(place: Place, text: str, says: str) -> None:
    error = place.refused(text)
    assert isinstance(error, UnknownSetting)
    assert error.message.startswith(str(place.file)) and says in error.message


def test_a_mistyped_variable_of_one_of_our_sections_is_refused(place: Place) -> None:
    with sweep() as row:
        for section in SECTIONS:
            with row(section):
                name = f"HIBOSS_{section.upper()}_ZZZ"
                error = place.refused("", **{name: "1"})
                assert isinstance(error, UnknownSetting)
                assert name in error.message and "the environment" in error.message
    assert "did you mean HIBOSS_LIMITS_PAGE_SIZE?" in place.refused("", HIBOSS_LIMITS_PAGESIZE="1").message


# --- unreadable files ----------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"[limits\n",
        b"page_size",
        b"[limits]\npage_size = 5\npage_size = 6\n",
        b"[limits]\npage_size = 5\n[limits]\n",
        b"{}",
        b"\x00",
        b"[limits]\n# \xff\n",
        "[limits]\n".encode("utf-16"),
        b"a = " + b"[" * 100_000,
    ],
)
def test_what_is_no_toml_or_no_text_is_refused_with_the_place(place: Place, content: bytes) -> None:
    error = place.refused(content)
    assert error.code == "bad_config" and str(place.file) in error.message and error.exit == 2


def test_a_file_that_cannot_be_read_is_refused_and_one_that_is_missing_is_not(place: Place) -> None:
    place.file.mkdir()
    assert "Is a directory" in place.refused().message
    place.file.rmdir()
    place.file.symlink_to(place.file)
    assert str(place.file) in place.refused().message
    place.file.unlink()
    assert place.read().settings == Configuration(str(place.file / "below"), {}).settings == DEFAULTS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(place: Place) -> None:
    place.file.write_text("")
    place.file.chmod(0)
    assert "Permission denied" in place.refused().message


# --- reading again -------------------------------------------------------------------


def test_a_reload_changes_the_values_in_place_and_says_which(place: Place) -> None:
    found = place.read(toml({"limits.page_size": 20, "limits.recipients": 5}))
    everybodys = found.settings
    place.file.write_text(toml({"limits.page_size": 30, "log.level": '"debug"'}))
    assert [str(setting) for setting in found.reload()] == [
        "limits.recipients",
        "limits.page_size",
        "log.level",
    ]
    assert found.settings is everybodys
    assert (everybodys.page_size, everybodys.recipients, everybodys.log_level) == (30, 100, "debug")
    assert found.sources["recipients"] == "default" and found.waiting == {} and found.reload() == []


def test_a_reload_of_something_wrong_changes_nothing_at_all(place: Place) -> None:
    found = place.read(toml({"limits.page_size": 20}))
    before = (describe(found), dict(found.waiting))
    for text in (toml({"limits.recipients": 3, "limits.page_size": 0}), "[", "x = 1"):
        place.file.write_text(text)
        with pytest.raises(BadConfig):
            found.reload()
        assert (describe(found), dict(found.waiting)) == before


def test_what_needs_a_start_waits_for_one_until_it_is_taken_back(place: Place) -> None:
    found = place.read("")
    place.file.write_text(toml({"store.lock_wait_seconds": 9, "limits.page_size": 20}))
    assert [str(setting) for setting in found.reload()] == ["limits.page_size"]
    assert {str(setting): value for setting, value in found.waiting.items()} == {
        "store.lock_wait_seconds": 9.0
    }
    shown = {one["setting"]: one for one in describe(found)}["store.lock_wait_seconds"]
    assert (shown["value"], shown["source"], shown["next_start"]) == (5.0, "default", True)
    assert shown["next_value"] == 9.0
    place.file.unlink()
    assert [str(setting) for setting in found.reload()] == ["limits.page_size"]
    assert found.waiting == {} and found.settings == DEFAULTS


# --- anything ------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)


@pytest.mark.slow
@example(setting=next(one for one in TABLE if one.name == "lock_wait_seconds"), value=-0.0)
@given(setting=st.sampled_from(TABLE), value=VALUES)
def test_whatever_is_given_is_taken_as_declared_or_refused(setting: Setting, value: Any) -> None:
    try:
        found = setting.check(value, "somewhere")
    except BadSetting as error:
        assert error.wants == setting.wants and len(error.value) <= 80
        return
    assert type(found) is type(setting.default)
    if setting.choices:
        assert found in setting.choices
    elif isinstance(found, tuple):
        assert all(isinstance(one, str) and one for one in found)
    elif not isinstance(found, str):
        assert setting.least <= found <= setting.most
    if isinstance(found, tuple) and any("," in one or one != one.strip() for one in found):
        return  # the environment cannot hold it
    shown = (
        ",".join(found) if isinstance(found, tuple) else f"{found:f}" if type(found) is float else str(found)
    )
    again = setting.check(shown, setting.variable)
    assert again == (pytest.approx(found, abs=1e-6) if type(found) is float else found)


@given(st.sampled_from(NUMBERS), st.integers(0, 10**16), st.sampled_from(["", "B", " KiB", "MiB", " GiB"]))
def test_a_size_is_its_number_times_its_unit_or_refused(setting: Setting, number: int, unit: str) -> None:
    factor = {"": 1, "B": 1, "KiB": 1024, "MiB": MIB, "GiB": 1024 * MIB}[unit.strip()]
    fits = setting.least <= number * factor <= setting.most and (not unit or setting in SIZES)
    try:
        found = setting.check(f"{number}{unit}", "somewhere")
    except BadSetting:
        assert not fits
    else:
        assert fits and found == number * factor
