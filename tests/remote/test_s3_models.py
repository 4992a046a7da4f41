from __future__ import annotations

import json
from pathlib import Path

import botocore.session
import pytest
from botocore.exceptions import DataNotFoundError
from botocore.loaders import Loader

from gds_lfs.remote.s3_models import use_fast_models


def loader_of(session: botocore.session.Session) -> Loader:
    return session.get_component("data_loader")


@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1"])
@pytest.mark.parametrize("service", ["s3", "sts", "sso"])
def test_a_description_is_what_botocore_reads(service: str, kind: str) -> None:
    plain, fast = botocore.session.Session(), botocore.session.Session()
    use_fast_models(fast)
    expected = loader_of(plain).load_service_model(service, kind)
    found = loader_of(fast).load_service_model(service, kind)
    assert json.dumps(found) == json.dumps(expected), "in the same order too"


def test_the_user_may_have_descriptions_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models/mine/2020-01-01").mkdir(parents=True)
    (tmp_path / "models/mine/2020-01-01/service-2.json").write_text('{"a": 1}')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_DATA_PATH", "~/models")
    session = botocore.session.Session()
    use_fast_models(session)
    assert loader_of(session).load_service_model("mine", "service-2") == {"a": 1}
    with pytest.raises(DataNotFoundError):
        loader_of(session).load_service_model("nobody", "service-2")
