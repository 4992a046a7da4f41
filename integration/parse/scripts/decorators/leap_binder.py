from typing import Dict, List, Union

import numpy as np
import numpy.typing as npt
from code_loader.contract.datasetclasses import PreprocessResponse
from code_loader.contract.enums import DatasetMetadataType, DataStateType, LeapDataType, MetricDirection
from code_loader.contract.visualizer_classes import LeapGraph
from code_loader.inner_leap_binder.leapbinder_decorators import (
    tensorleap_custom_loss,
    tensorleap_custom_metric,
    tensorleap_custom_visualizer,
    tensorleap_gt_encoder,
    tensorleap_input_encoder,
    tensorleap_metadata,
    tensorleap_preprocess,
)

from waves import KINDS, read_waves


@tensorleap_preprocess()
def preprocess_func() -> List[PreprocessResponse]:
    print("preprocess of the decorated script")
    waves = read_waves()
    responses = []
    for state in (DataStateType.training, DataStateType.validation, DataStateType.test):
        ids = [name for name, row in waves.items() if row["split"] == state.name]
        responses.append(PreprocessResponse(sample_ids=ids, data=waves, state=state, sample_id_type=str))
    return responses


@tensorleap_input_encoder("signal", channel_dim=-1)
def signal_encoder(sample_id: str, preprocess: PreprocessResponse) -> npt.NDArray[np.float32]:
    row = preprocess.data[sample_id]
    return np.array([[row[f"s{step}"]] for step in range(8)], dtype=np.float32)


@tensorleap_gt_encoder("kind")
def kind_encoder(sample_id: str, preprocess: PreprocessResponse) -> npt.NDArray[np.float32]:
    return np.eye(len(KINDS), dtype=np.float32)[KINDS.index(preprocess.data[sample_id]["kind"])]


@tensorleap_metadata("height", metadata_type=DatasetMetadataType.float)
def height(sample_id: str, preprocess: PreprocessResponse) -> float:
    return float(np.ptp(signal_encoder(sample_id, preprocess)))


@tensorleap_metadata("buoy")
def buoy(sample_id: str, preprocess: PreprocessResponse) -> Dict[str, Union[str, int, bool]]:
    row = preprocess.data[sample_id]
    return {"kind": row["kind"], "number": int(sample_id.split("-")[1]), "storm": row["kind"] == "storm"}


@tensorleap_custom_metric("distance", direction=MetricDirection.Downward)
def distance(truth: npt.NDArray[np.float32], prediction: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.abs(truth - prediction).mean(axis=-1)


@tensorleap_custom_loss("squares")
def squares(truth: npt.NDArray[np.float32], prediction: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return ((truth - prediction) ** 2).mean(axis=-1)


@tensorleap_custom_visualizer("wave", LeapDataType.Graph)
def wave(data: npt.NDArray[np.float32]) -> LeapGraph:
    return LeapGraph(np.squeeze(data, axis=0))
