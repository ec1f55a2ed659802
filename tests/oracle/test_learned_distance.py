"""The learned distance against the exact one, and its training; slow, for the exact one takes long to compile."""

import numpy as np
import pytest

from logishape.cochlea import load_calibration
from logishape.cochlea.distance_errors import distance_errors, likely_errors
from logishape.cochlea.learned import load_network
from logishape.cochlea.train_distance import TrainOptions, train

pytestmark = pytest.mark.slow
SMALL = TrainOptions(rounds=2, steps=20, shapes=16, points=128, batch=4)


def test_the_package_s_network_knows_the_distance():
    calibration, network = load_calibration(), load_network()
    anywhere, likely = (measure(calibration, network, (16, 128), 5) for measure in (distance_errors, likely_errors))
    assert max(anywhere.mean, likely.mean) < 0.03
    assert max(anywhere.zero_p95, likely.zero_p95) < 0.05
    assert likely.zero_within > 0.99


def test_training_learns_and_goes_on_where_it_was_stopped(tmp_path):
    calibration, told = load_calibration(), []
    whole = train(calibration, SMALL, tmp_path / "whole.npz", told.append)
    losses = [float(line.split()[5]) for line in told if "loss" in line]
    assert losses[-1] < losses[0]

    def stop(line: str) -> None:
        if line.startswith("round 2") and "learning" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(calibration, SMALL, tmp_path / "parts.npz", stop)
    assert not (tmp_path / "parts.npz").exists()
    again = []
    parts = train(calibration, SMALL, tmp_path / "parts.npz", again.append)
    assert again[0] == "going on after round 1"
    for one, other in zip(parts.weights.layers, whole.weights.layers, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.npz", "whole.npz"]
