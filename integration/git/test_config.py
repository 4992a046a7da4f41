from __future__ import annotations

from pathlib import Path

import pytest

from gds_lfs.errors import ConfigError
from gds_lfs.git.config import (
    DatasetsConfig,
    Settings,
    read_datasetsconfig,
    write_datasetsconfig,
)
from gds_lfs.git.remotes import local_git_dir, remote_url
from gds_lfs.git.repo import Repo


@pytest.fixture
def repo(top):
    return Repo.discover(top)


def test_settings_across_scopes(repo, git, home):
    git("config", "--global", "filter.datasets.clean", "global")
    git("config", "filter.datasets.clean", "local")
    git("config", "Remote.My.Name.datasetsUrl", "s3://Bucket/x y")
    settings = Settings.read(repo)
    assert settings.get("filter.datasets.CLEAN") == "local"
    assert settings.get_all("filter.datasets.clean") == ["global", "local"]
    assert settings.scope("filter.datasets.clean") == "local"
    assert settings.get("remote.My.Name.datasetsurl") == "s3://Bucket/x y"
    assert settings.get("remote.my.name.datasetsurl") is None
    assert settings.get("nothing.there") is None
    assert settings.scope("nothing.there") is None


def test_settings_outside_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = Settings.read()
    assert settings.get("user.name") == "Test"


def test_broken_config_is_named(repo, top):
    (top / ".git" / "config").write_text("[broken\n")
    with pytest.raises(ConfigError, match="bad config line 1"):
        Settings.read(repo)


def test_datasetsconfig_from_everywhere(repo, top, git):
    assert read_datasetsconfig(repo) == DatasetsConfig()
    assert read_datasetsconfig(repo, ":") == DatasetsConfig()
    write_datasetsconfig(repo, "datasets.remote", "s3://one/x")
    write_datasetsconfig(repo, "dataset.sub/Set.v1.sqlfile", "my rows.sqlite")
    write_datasetsconfig(repo, "dataset.index.py.sqlfile", "d.sqlite")
    git("add", ".datasetsconfig")
    git("commit", "-q", "-m", "x")
    write_datasetsconfig(repo, "datasets.remote", "s3://two/x")
    git("add", ".datasetsconfig")
    write_datasetsconfig(repo, "datasets.remote", "s3://three/x")
    files = {"sub/Set.v1": "my rows.sqlite", "index.py": "d.sqlite"}
    assert read_datasetsconfig(repo, "HEAD") == DatasetsConfig("s3://one/x", files)
    assert read_datasetsconfig(repo, ":") == DatasetsConfig("s3://two/x", files)
    assert read_datasetsconfig(repo) == DatasetsConfig("s3://three/x", files)
    write_datasetsconfig(repo, "datasets.remote", None)
    write_datasetsconfig(repo, "datasets.remote", None)
    assert read_datasetsconfig(repo).remote is None


def test_datasetsconfig_in_a_bare_repository(repo, top, git, tmp_path):
    write_datasetsconfig(repo, "datasets.remote", "s3://one/x")
    git("add", ".datasetsconfig")
    git("commit", "-q", "-m", "x")
    git("clone", "-q", "--bare", str(top), "b.git", cwd=tmp_path)
    assert read_datasetsconfig(Repo.discover(tmp_path / "b.git"), "HEAD").remote == "s3://one/x"


def test_datasetsconfig_names_no_program(repo, top):
    (top / "evil").write_text("[datasets]\n\tremote = s3://evil/\n")
    (top / ".datasetsconfig").write_text(
        '[datasets]\n\tremote = s3://good/\n\tpython = ./evil\n[filter "datasets"]\n\tprocess = ./evil\n'
        "[include]\n\tpath = evil\n"
    )
    found = read_datasetsconfig(repo)
    assert found.remote == "s3://good/"
    assert len(found.warnings) == 3
    assert "datasets.python is ignored" in found.warnings[0]


def test_broken_datasetsconfig(repo, top):
    (top / ".datasetsconfig").write_text("[datasets\n")
    with pytest.raises(ConfigError, match=r"\.datasetsconfig: bad config line 1"):
        read_datasetsconfig(repo)


def test_a_neighbour_keeps_its_datasets(repo, top, git, tmp_path):
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("init", "-q", "--bare", "b.git", cwd=tmp_path)
    git("worktree", "add", "-q", "../w")
    git("init", "-q", "--separate-git-dir=sep", "s", cwd=tmp_path)
    (tmp_path / "other").mkdir()
    for url, expected in {
        str(top): top / ".git",
        "../b.git": tmp_path / "b.git",
        "../b": tmp_path / "b.git",
        (tmp_path / "b.git").as_uri(): tmp_path / "b.git",
        "../w": top / ".git",
        "../s": tmp_path / "sep",
        "../other": None,
        "../absent": None,
        "host:path": None,
        "https://host/path": None,
    }.items():
        found = local_git_dir(url, top)
        assert (found and Path(found).resolve()) == expected, url
    git("remote", "add", "origin", "../b.git")
    where = remote_url(Settings.read(repo), DatasetsConfig(), "origin")
    assert where is not None
    assert Path(where).resolve() == tmp_path / "b.git" / "datasets-remote"


def test_precedence_of_remote_urls(repo, git):
    shared = DatasetsConfig("s3://shared/")
    assert remote_url(Settings.read(repo), DatasetsConfig(), "origin") is None
    assert remote_url(Settings.read(repo), shared, "origin") == "s3://shared/"
    git("config", "datasets.remote", "s3://mine/")
    assert remote_url(Settings.read(repo), shared, "origin") == "s3://mine/"
    git("config", "remote.origin.datasetsUrl", "s3://origin/")
    assert remote_url(Settings.read(repo), shared, "origin") == "s3://origin/"
    assert remote_url(Settings.read(repo), shared, "other") == "s3://mine/"
