from code_loader.contract.datasetclasses import PredictionTypeHandler
from code_loader.inner_leap_binder.leapbinder_decorators import tensorleap_integration_test, tensorleap_load_model

from leap_binder import *

prediction = PredictionTypeHandler("inside", ["inside"])


@tensorleap_load_model([prediction])
def load_model():
    raise NotImplementedError("there is no model where a dataset is parsed")


@tensorleap_integration_test()
def integration_test(idx, subset):
    point = point_encoder(idx, subset)
    inside = inside_encoder(idx, subset)
    model = load_model()
    predicted = model([point])
    squares(inside, predicted)
    radius(idx, subset)


if __name__ == "__main__":
    integration_test(0, preprocess_func_leap()[0])
