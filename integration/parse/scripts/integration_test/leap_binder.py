from typing import List

import numpy as np
import numpy.typing as npt
from code_loader.contract.datasetclasses import PreprocessResponse
from code_loader.contract.enums import DataStateType
from code_loader.inner_leap_binder.leapbinder_decorators import (
    tensorleap_custom_loss,
    tensorleap_gt_encoder,
    tensorleap_input_encoder,
    tensorleap_metadata,
    tensorleap_preprocess,
)


@tensorleap_preprocess()
def preprocess_func_leap() -> List[PreprocessResponse]:
    print("preprocess of the integration test")
    rng = np.random.default_rng(7)
    points = rng.uniform(-1, 1, size=(60, 2)).astype(np.float32)
    return [
        PreprocessResponse(sample_ids=list(range(50)), data=points, state=DataStateType.training, sample_id_type=int),
        PreprocessResponse(
            sample_ids=list(range(50, 60)), data=points, state=DataStateType.validation, sample_id_type=int
        ),
    ]


@tensorleap_input_encoder("point", channel_dim=-1)
def point_encoder(idx: int, preprocess: PreprocessResponse) -> npt.NDArray[np.float32]:
    return preprocess.data[idx]


@tensorleap_gt_encoder("inside")
def inside_encoder(idx: int, preprocess: PreprocessResponse) -> npt.NDArray[np.float32]:
    return np.array([np.hypot(*preprocess.data[idx]) < 1], dtype=np.float32)


@tensorleap_metadata("radius")
def radius(idx: int, preprocess: PreprocessResponse) -> float:
    return float(np.hypot(*preprocess.data[idx]))


@tensorleap_custom_loss("squares")
def squares(truth: npt.NDArray[np.float32], prediction: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return ((truth - prediction) ** 2).mean(axis=-1)
