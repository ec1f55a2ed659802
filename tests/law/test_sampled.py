"""The sampled posterior of a cochlea: what it goes with, what it warns of, and that it is nearly the Laplace one."""

import json
import sys

import jsonschema
import numpy as np
import pytest

from logishape import cli
from logishape.cochlea import SegmentOptions, segment
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.sampled import flags_of_chains
from logishape.posterior import SampledPosterior
from tests.problems import assert_one_sentence
from tests.segmentations import NAME, OPTIONS, phantom, write_case

NAMES = ("a", "b")


def chains_of(draws: np.ndarray, num_divergent: int = 0) -> SampledPosterior:
    """Chains as the sampler gives them, in a box of ten to each side."""
    return SampledPosterior(draws, np.full(2, -10.0), np.full(2, 10.0), NAMES, 4000, num_divergent)


def good_draws(seed=0, size=400) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(2, size, 2))


def run_command(capsys, *words) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["logishape", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
    told = capsys.readouterr()
    return int(end.value.code or 0), told.out, told.err


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return write_case(tmp_path_factory.mktemp("sampled") / "phantom")


def test_it_selects_the_intervals_it_stands_for():
    assert SegmentOptions(posterior="mcmc").intervals == "observed"
    assert SegmentOptions(posterior="mcmc", intervals="observed").intervals == "observed"
    assert SegmentOptions().intervals == "matched"


CONFLICTS = {
    "matched": ({"intervals": "matched"}, "stand for but intervals are matched; leave them out"),
    "complete": ({"intervals": "complete"}, "stand for but intervals are complete; leave them out"),
    "paper": ({"preset": "paper"}, "those of the paper's preset"),
    "mesh": ({"distance": "mesh"}, "but the distance is mesh; leave it out"),
    "another way": ({"posterior": "gibbs"}, "laplace or mcmc but is 'gibbs'"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_it_does_not_go_with(name):
    choice, pattern = CONFLICTS[name]
    assert_one_sentence(lambda: SegmentOptions(**({"posterior": "mcmc"} | choice)), pattern)


def test_the_command_refuses_before_it_reads(place, tmp_path, capsys):
    words = ("cochlea", place / NAME, "-o", tmp_path / "out", "--posterior", "mcmc", "--intervals", "matched")
    code, _, told = run_command(capsys, *words)
    assert code == 2
    assert "intervals are matched" in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_without_blackjax_nothing_is_fitted(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    stages: list[str] = []
    options = SegmentOptions(posterior="mcmc")
    assert_one_sentence(
        lambda: segment(phantom().volume, options=options, progress=stages.append),
        r'run pip install "logishape\[mcmc\]"',
    )
    assert stages == []


def test_chains_that_have_met_earn_no_flag():
    assert flags_of_chains(None) == []
    assert flags_of_chains(chains_of(good_draws())) == []


def test_chains_that_have_not_met_are_to_be_checked():
    apart = good_draws() + np.array([0.0, 0.8])[None, None] * np.array([-1, 1])[:, None, None]
    (flag,) = [one for one in flags_of_chains(chains_of(apart)) if one.name == "r_hat"]
    assert not flag.is_serious
    assert "R-hat of b is 1." in flag.message


def test_draws_that_are_worth_little_are_to_be_checked():
    few = np.repeat(good_draws(size=40), 20, axis=1)  # each draw twenty times
    (flag,) = [one for one in flags_of_chains(chains_of(few)) if one.name == "sample_size"]
    assert not flag.is_serious
    assert "independent ones only" in flag.message
    stuck = good_draws()
    stuck[..., 1] = 0.5
    assert {flag.name for flag in flags_of_chains(chains_of(stuck))} == {"r_hat", "sample_size"}


def test_the_gaussian_of_the_chains():
    chains = chains_of(good_draws() * np.array([1.0, 2.0]) + np.array([3.0, 0.0]), num_divergent=2)
    gaussian = chains.as_gaussian(np.array([2.9, 0.1]))
    assert gaussian.kind == "mcmc"
    np.testing.assert_array_equal(gaussian.mean, [2.9, 0.1])
    np.testing.assert_allclose(gaussian.centre, chains.mean)
    np.testing.assert_allclose(gaussian.sd, chains.all_draws.std(axis=0, ddof=1))
    told = chains.summary()
    assert (told["num_chains"], told["draws_per_chain"], told["divergences"]) == (2, 400, 2)
    assert set(told["r_hat"]) == set(told["effective_sample_size"]) == set(NAMES)


@pytest.mark.slow  # compiles the sampler
def test_the_command_samples_what_laplace_approximates(place, tmp_path, capsys):
    marks = ("--landmarks", place / "right" / "landmarks.json", "--draws", OPTIONS.num_draws)
    words = ("cochlea", place / NAME, "-o", tmp_path / "out", "--json", *marks)
    code, out, told = run_command(capsys, *words, "--posterior", "mcmc")
    assert code == 0, told
    sampled = json.loads(out)
    jsonschema.validate(sampled, json.loads((DEFAULT_FILE.parent / "result.schema.json").read_text()))
    assert sampled["posterior"]["kind"] == "mcmc"
    assert sampled["options"]["intervals"] == "observed"
    assert sampled["posterior"]["blur"] is None
    assert any("by NUTS" in note for note in sampled["notes"])
    chains = sampled["posterior"]["chains"]
    assert min(chains["effective_sample_size"].values()) > 300  # of a thousand; 1400 were seen
    assert max(chains["r_hat"].values()) < 1.02
    assert chains["divergences"] == 0
    code, out, _ = run_command(capsys, *words, "--overwrite", "--intervals", "observed")
    plain = json.loads(out)
    for name, one in plain["parameters"].items():
        other = sampled["parameters"][name]
        assert other["value"] == one["value"]  # the same fit
        # SDs differ by 12 % at most where the posterior has wider shoulders than a Gaussian (benchmarks/mcmc.py).
        assert other["sd"] == pytest.approx(one["sd"], rel=0.3), name
        assert abs(other["median"] - one["median"]) < one["sd"], name
