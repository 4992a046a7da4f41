from __future__ import annotations

import pytest

from gds_lfs.errors import ConfigError, RemoteError
from gds_lfs.git.config import DatasetsConfig, Settings
from gds_lfs.porcelain.s3_settings import address, checked_place, link_command, s3_options, split_address
from gds_lfs.remote.s3_options import S3Options

URL = "s3://bucket/p"
PROPOSED = DatasetsConfig(URL, endpoint="https://S3.example.org/", region="garage")


def settings(values: dict[str, str] | None = None, **variables: str) -> Settings:
    return Settings([("local", key, value) for key, value in (values or {}).items()], variables)


def test_nothing_said_is_left_to_boto3() -> None:
    assert s3_options(settings(), DatasetsConfig(URL), "origin", URL) == S3Options()


def test_a_server_that_only_a_tracked_file_names_is_refused() -> None:
    with pytest.raises(RemoteError) as raised:
        s3_options(settings(), PROPOSED, "origin", URL)
    assert f"`git datasets link {URL} --endpoint https://s3.example.org --region garage`" in str(raised.value)


def test_an_approved_server_is_used() -> None:
    approving = settings({"datasets.trustedendpoint": "https://s3.example.org"})
    found = s3_options(approving, PROPOSED, "origin", URL)
    assert (found.endpoint, found.region) == ("https://s3.example.org", "garage")


@pytest.mark.parametrize(
    "near", ["https://s3.example.org.evil.net", "http://s3.example.org", "https://s3.example.org:1"]
)
def test_approval_is_for_one_server_exactly(near: str) -> None:
    approving = settings({"datasets.trustedendpoint": "https://s3.example.org"})
    with pytest.raises(RemoteError, match="if you trust it"):
        s3_options(approving, DatasetsConfig(URL, endpoint=near), "origin", URL)


def test_what_a_tracked_file_proposes_is_for_its_own_url_alone() -> None:
    assert s3_options(settings(), PROPOSED, "origin", "s3://another/p") == S3Options()


def test_the_users_own_words_come_first() -> None:
    environment = s3_options(settings(AWS_ENDPOINT_URL="http://env"), PROPOSED, "origin", URL)
    assert environment.endpoint == "http://env"
    config = settings({"datasets.endpoint": "http://config", "datasets.region": "mine"}, AWS_ENDPOINT_URL="http://env")
    found = s3_options(config, PROPOSED, "origin", URL)
    assert (found.endpoint, found.region) == ("http://config", "mine")


def test_one_git_remote_may_differ() -> None:
    values = {"datasets.profile": "all", "remote.second.datasetsprofile": "one", "remote.second.datasetsregion": "r"}
    assert s3_options(settings(values), DatasetsConfig(), "origin", URL) == S3Options(profile="all")
    assert s3_options(settings(values), DatasetsConfig(), "second", URL) == S3Options(profile="one", region="r")


def test_every_setting() -> None:
    values = {
        "datasets.pathstyle": "false",
        "datasets.storageclass": "STANDARD_IA",
        "datasets.encryption": "aws:kms",
        "datasets.kmskey": "key-1",
        "datasets.timeout": "7.5",
    }
    assert s3_options(settings(values), DatasetsConfig(), "origin", URL) == S3Options(
        path_style=False, storage_class="STANDARD_IA", encryption="aws:kms", kms_key="key-1", timeout=7.5
    )


@pytest.mark.parametrize("value", ["soon", "0", "-1", "inf", "nan"])
def test_a_timeout_that_is_none(value: str) -> None:
    with pytest.raises(ConfigError, match=r"datasets\.timeout"):
        s3_options(settings({"datasets.timeout": value}), DatasetsConfig(), "origin", URL)


@pytest.mark.parametrize("value", ["AES256", "aws:kms", "aws:kms:dsse", ""])
def test_an_encryption_that_s3_has(value: str) -> None:
    found = s3_options(settings({"datasets.encryption": value}), DatasetsConfig(), "origin", URL)
    assert found.encryption == (value or None)


@pytest.mark.parametrize("key", ["datasets.encryption", "remote.origin.datasetsencryption"])
@pytest.mark.parametrize("value", ["foo", "aes256"])
def test_an_encryption_that_s3_has_not_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{key} is '{value}', which is none of AES256, aws:kms, aws:kms:dsse$"):
        s3_options(settings({key: value}), DatasetsConfig(), "origin", URL)


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("On", True), ("1", True), ("no", False), ("0", False)])
def test_a_path_style_in_any_of_gits_spellings(value: str, meant: bool) -> None:
    found = s3_options(settings({"datasets.pathstyle": value}), DatasetsConfig(), "origin", URL)
    assert found.path_style is meant


@pytest.mark.parametrize("key", ["datasets.pathstyle", "remote.origin.datasetspathstyle"])
def test_a_path_style_that_is_none_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{key} is 'maybe'"):
        s3_options(settings({key: "maybe"}), DatasetsConfig(), "origin", URL)


def test_a_url_may_have_settings_of_its_own() -> None:
    values = {"datasets.https://h/x.git.region": "mine", "datasets.region": "all"}
    assert s3_options(settings(values), DatasetsConfig(), "https://h/x.git", URL).region == "mine"
    assert s3_options(settings(values), DatasetsConfig(), "origin", URL).region == "all"


def test_a_place_is_checked_before_it_is_kept() -> None:
    assert checked_place(URL, "HTTP://127.0.0.1:80/", "r") == ("http://127.0.0.1", "r")
    assert checked_place("/mnt/nas", None, None) == (None, None)
    with pytest.raises(ConfigError, match="for s3:// URLs"):
        checked_place("/mnt/nas", "http://h", None)
    with pytest.raises(RemoteError):
        checked_place("s3://!", None, None)


def test_the_command_names_all_of_the_place() -> None:
    assert link_command(URL, None, None) == f"git datasets link {URL}"
    assert link_command(URL, None, None, local=True) == f"git datasets link --local {URL}"
    assert link_command(URL, "http://h", "r") == f"git datasets link {URL} --endpoint http://h --region r"


def test_a_tracked_file_cannot_slip_a_command_into_it() -> None:
    assert link_command("s3://b/$(x);y", None, None) == "git datasets link 's3://b/$(x);y'"


@pytest.mark.parametrize(
    "place", [(URL, None), (URL, "http://h:9"), ("s3://b/with space", None), ("/mnt/my nas/data", None)]
)
def test_a_place_in_words_can_be_taken_apart(place: tuple[str, str | None]) -> None:
    assert split_address(address(*place)) == place
