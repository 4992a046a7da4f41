from __future__ import annotations

import pytest

from gds_lfs.git.config import DatasetsConfig, Settings
from gds_lfs.git.remotes import key_for, name_of, remote_url, setting_key, without_credentials

URL = "https://git.example.org/team/repo.git"
REMOTES = {
    "remote.origin.url": URL,
    "remote.origin.pushurl": "ssh://git@git.example.org/team/repo.git",
    "remote.near.url": "/srv/near.git",
    "remote.team/far.url": "git@git.example.org:far.git",
}


def settings(values: dict[str, str]) -> Settings:
    return Settings([("local", key, value) for key, value in (REMOTES | values).items()], {})


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("origin", "origin"),
        (URL, "origin"),
        (URL + "/", "origin"),
        ("https://user:secret@git.example.org/team/repo.git", "origin"),
        ("ssh://git@git.example.org/team/repo.git", "origin"),
        ("/srv/near.git", "near"),
        ("/srv/./near.git/", "near"),
        ("file:///srv/near.git", "near"),
        ("git@git.example.org:far.git", "team/far"),
        ("team/far", "team/far"),
        ("https://git.example.org/team/repo", "https://git.example.org/team/repo"),
        ("/srv/other.git", "/srv/other.git"),
        ("nosuch", "nosuch"),
    ],
)
def test_a_remotes_own_url_means_that_remote(said: str, name: str) -> None:
    assert name_of(settings({}), said) == name


def test_a_url_comes_before_another_remotes_push_url() -> None:
    assert name_of(settings({"remote.other.pushurl": "/srv/near.git"}), "/srv/near.git") == "near"


def test_what_is_said_of_one_url_is_for_that_one_alone() -> None:
    one, two = "https://git.example.org/one.git", "https://git.example.org/two.git"
    found = settings({f"datasets.{one}.remote": "/one", f"datasets.{two}.remote": "/two", "datasets.remote": "/all"})
    places = {url: remote_url(found, DatasetsConfig(), url) for url in (one, two, "origin", one + "/", one[:-4])}
    assert places == {one: "/one", two: "/two", "origin": "/all", one + "/": "/one", one[:-4]: "/all"}


def test_the_key_holds_no_password_and_is_found_with_it() -> None:
    key = key_for(settings({}), "https://user:p@ss@example.org/x.git/", "remote")
    assert key == "datasets.https://example.org/x.git.remote"
    assert setting_key(settings({key: "/x"}), "https://other:word@example.org/x.git", "remote") == key


@pytest.mark.parametrize("server", [URL + "/info/lfs", "https://lfs.example.org/x"])
def test_the_lfs_server_of_a_remote_counts_as_its_url(server: str) -> None:
    found = settings({f"datasets.{server}.remote": "/x", "remote.origin.lfsurl": "https://lfs.example.org/x"})
    assert remote_url(found, DatasetsConfig(), "origin") == "/x"
    assert remote_url(found, DatasetsConfig(), "team/far") is None


def test_keys_to_write_to() -> None:
    def key(git_remote: str | None) -> str:
        return key_for(settings({}), git_remote, "remote")

    assert key(None) == "datasets.remote"
    assert key("near") == key("/srv/near.git") == "remote.near.datasetsurl"
    assert key("team/far") == "remote.team/far.datasetsurl"
    assert key_for(settings({}), URL, "region") == "remote.origin.datasetsregion"
    assert key("../else.git") == "datasets.../else.git.remote"


def test_credentials_are_not_shown() -> None:
    assert without_credentials("https://u:p@ss@host/a@b") == "https://host/a@b"
    assert without_credentials("s3://u:p@host/a") == "s3://host/a"
    assert without_credentials("/plain/a@b") == "/plain/a@b"
