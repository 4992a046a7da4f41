from __future__ import annotations

from pathlib import Path

import pytest

from gds_lfs.errors import ConfigError
from gds_lfs.git.config import DatasetsConfig, Settings, cache_dir, parse_datasetsconfig


def settings(*values: tuple[str, str, str | None], **variables: str) -> Settings:
    return Settings(values, variables)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in ("true", "Yes", "on", "1", "-2", None)),
        *((value, False) for value in ("false", "no", "off", "0", "")),
    ],
)
def test_booleans(value, expected):
    assert settings(("local", "a.b", value)).get_bool("a.b") is expected


def test_booleans_that_are_not_there():
    assert settings().get_bool("a.b") is False
    assert settings().get_bool("a.b", default=True) is True


@pytest.mark.parametrize(("value", "expected"), [("0", 0), ("7", 7), ("2k", 2048), ("3M", 3 << 20), (" 4g ", 4 << 30)])
def test_numbers(value, expected):
    assert settings(("local", "a.b", value)).get_number("a.b") == expected


def test_numbers_that_are_none():
    assert settings().get_number("a.b") is None
    for value in ("", "1.5g", "-1", "many", None):
        with pytest.raises(ConfigError, match=r"a\.b is .*, which is no number"):
            settings(("local", "a.b", value)).get_number("a.b")


def test_keys_are_compared_as_git_does():
    found = settings(("local", "remote.My.Name.url", "x"), ("local", "core.hookspath", "y"))
    assert found.get("Remote.My.Name.URL") == "x"
    assert found.get("remote.my.name.url") is None
    assert found.get("core.hooksPath") == "y"


def test_the_last_value_wins():
    found = settings(("global", "a.b", "1"), ("local", "a.b", "2"), ("local", "a.b", "3"))
    assert (found.get("a.b"), found.get_all("a.b")) == ("3", ["1", "2", "3"])
    assert found.scope("a.b") == "local"


def test_variables():
    assert settings().skip_smudge is False
    assert settings(GIT_DATASETS_SKIP_SMUDGE="1").skip_smudge is True
    assert settings(GIT_DATASETS_SKIP_SMUDGE="0").skip_smudge is False


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DATASETS_CACHE", str(tmp_path / "c"))
    assert cache_dir() == tmp_path / "c"
    monkeypatch.delenv("GIT_DATASETS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir().name == "git-datasets"
    assert tmp_path in cache_dir().parents
    monkeypatch.setenv("GIT_DATASETS_CACHE", "relative")
    monkeypatch.chdir(tmp_path)
    assert cache_dir() == Path.cwd() / "relative"


def test_allowed_keys():
    found = parse_datasetsconfig(
        [("datasets.remote", "s3://b/p"), ("dataset.index.py.sqlfile", "d.sqlite"), ("dataset.a/b.c.sqlfile", "x y.db")]
    )
    assert found == DatasetsConfig("s3://b/p", {"index.py": "d.sqlite", "a/b.c": "x y.db"})


def test_a_server_and_a_region_may_be_proposed():
    found = parse_datasetsconfig([("datasets.endpoint", "https://s3.example.org"), ("datasets.region", "garage")])
    assert (found.endpoint, found.region) == ("https://s3.example.org", "garage")


def test_the_users_own_server():
    assert settings().s3_endpoint is None
    assert settings(AWS_ENDPOINT_URL="http://a").s3_endpoint == "http://a"
    assert settings(AWS_ENDPOINT_URL="http://a", AWS_ENDPOINT_URL_S3="http://b").s3_endpoint == "http://b"
    assert settings(AWS_ENDPOINT_URL="http://a", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="true").s3_endpoint is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("datasets.python", "x", "only datasets.remote, datasets.endpoint, datasets.region and dataset.<file>.sqlfile"),
        ("filter.datasets.process", "x", "only datasets.remote"),
        ("dataset.a.run", "x", "only datasets.remote"),
        ("dataset.sqlfile", "x", "only datasets.remote"),
        ("datasets.profile", "x", "only datasets.remote"),
        ("datasets.kmskey", "x", "only datasets.remote"),
        ("datasets.endpoint", "", "no value"),
        ("datasets.remote", "a\nb", "control characters"),
        ("datasets.remote", "a\x1b[2Jb", "control characters"),
        ("datasets.remote", "", "no value"),
        ("datasets.remote", None, "no value"),
        ("dataset.index.py.sqlfile", "../x", "inside the repository"),
        ("dataset.index.py.sqlfile", "/etc/x", "inside the repository"),
        ("dataset.index.py.sqlfile", ".git/config", "inside the repository"),
        ("dataset.../x.sqlfile", "f", "inside the repository"),
        ("dataset.a/.GIT/x.sqlfile", "f", "inside the repository"),
        ("dataset.a.sqlfile", "b\\..\\c", "inside the repository"),
    ],
)
def test_everything_else_is_ignored_by_name(key, value, reason):
    found = parse_datasetsconfig([(key, value)])
    assert (found.remote, found.sql_files) == (None, {})
    [warning] = found.warnings
    assert warning.startswith(f".datasetsconfig: {key} is ignored: ")
    assert reason in warning


def test_warnings_print_no_control_characters():
    [warning] = parse_datasetsconfig([("x.\x1b[2J\udcff.y", "z")]).warnings
    assert "\x1b" not in warning
    assert warning.isprintable()
