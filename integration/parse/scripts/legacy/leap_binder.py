from typing import List

import numpy as np
from code_loader import leap_binder
from code_loader.contract.datasetclasses import PreprocessResponse
from code_loader.contract.enums import DatasetMetadataType, LeapDataType
from code_loader.contract.visualizer_classes import LeapHorizontalBar

from project.config import CONFIG
from project.data import load


def preprocess_func() -> List[PreprocessResponse]:
    print("preprocess of the legacy script")
    train = load(CONFIG["train"], 0)
    validation = load(CONFIG["validation"], CONFIG["train"])
    return [
        PreprocessResponse(length=len(train["images"]), data=train),
        PreprocessResponse(length=len(validation["images"]), data=validation),
    ]


def unlabeled_preprocess_func() -> PreprocessResponse:
    data = load(CONFIG["unlabeled"], 50)
    return PreprocessResponse(length=len(data["images"]), data={"images": data["images"]})


def input_encoder(idx: int, preprocess: PreprocessResponse) -> np.ndarray:
    return preprocess.data["images"][idx]


def gt_encoder(idx: int, preprocess: PreprocessResponse) -> np.ndarray:
    one_hot = np.zeros(len(CONFIG["classes"]), dtype=np.float32)
    one_hot[preprocess.data["labels"][idx]] = 1.0
    return one_hot


def metadata_brightness(idx: int, preprocess: PreprocessResponse) -> float:
    return float(preprocess.data["images"][idx].mean())


def metadata_index(idx: int, preprocess: PreprocessResponse) -> int:
    return idx


def horizontal_bar_visualizer(data: np.ndarray) -> LeapHorizontalBar:
    return LeapHorizontalBar(np.squeeze(data), CONFIG["classes"])


leap_binder.set_preprocess(function=preprocess_func)
leap_binder.set_unlabeled_data_preprocess(function=unlabeled_preprocess_func)
leap_binder.set_input(function=input_encoder, name="image")
leap_binder.set_ground_truth(function=gt_encoder, name="classes")
leap_binder.set_metadata(function=metadata_brightness, name="brightness", metadata_type=DatasetMetadataType.float)
leap_binder.set_metadata(function=metadata_index, name="index")
leap_binder.set_visualizer(
    function=horizontal_bar_visualizer, name="bars", visualizer_type=LeapDataType.HorizontalBar
)
leap_binder.add_prediction(name="classes", labels=CONFIG["classes"])
