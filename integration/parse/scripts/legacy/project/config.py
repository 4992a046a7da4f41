CONFIG = {"size": 16, "channels": 1, "classes": ["square", "cross"], "train": 40, "validation": 10, "unlabeled": 5}
