import csv
from pathlib import Path

KINDS = ["calm", "rough", "storm"]


def read_waves():
    with open(Path(__file__).parent / "data" / "waves.csv", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}
