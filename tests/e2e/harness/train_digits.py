"""Trains the two versions of the digits classifier; runs in the environment of MLServer.

usage: train_digits.py FOLDER

Writes light.joblib, heavy.joblib and inputs.json: the pixels of those handwritten digits that
neither version was trained on. Training is deterministic, and takes seconds.
"""

import json
import sys
from pathlib import Path

import joblib
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

TRAINED_ON = 1_297  # of 1 797


def main(folder: Path) -> None:
    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels / 16
    seen, unseen = pixels[:TRAINED_ON], pixels[TRAINED_ON:]
    light = LogisticRegression(max_iter=2_000).fit(seen, digits[:TRAINED_ON])
    heavy = RandomForestClassifier(200, random_state=0).fit(seen, digits[:TRAINED_ON])
    joblib.dump(light, folder / "light.joblib")
    joblib.dump(heavy, folder / "heavy.joblib")
    inputs = [{"pixels": list(row), "digit": int(digit)} for row, digit in zip(unseen, digits[TRAINED_ON:])]
    (folder / "inputs.json").write_text(json.dumps(inputs))


main(Path(sys.argv[1]))
