"""Sections that stray: their series against NumPy, the evidence and the draws against what a Gaussian has."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from logishape.cochlea import Cochlea
from logishape.cochlea.draws import draw_cochleae
from logishape.cochlea.measurements import measure
from logishape.cochlea.misfit import Misfit, _evidence
from logishape.cochlea.sections import COLUMNS
from logishape.cochlea.straying import MODES, NUM_MODES, UNIT_SD, strayed
from logishape.cochlea.view import View
from logishape.core.arrays import double_precision
from logishape.posterior import ShapePosterior

NUM_DRAWS = 4000


@pytest.fixture(scope="module")
def cochlea():
    return Cochlea(free=("section_scale", "theta_max", "apex_offset"))


def values_of(cochlea, powers, angles):
    """c0, c2, s2, dr, dz at these angles."""
    with double_precision():
        return np.asarray(cochlea.with_sections(powers).calibration.table(angles).value)


def test_a_deviation_is_its_chebyshev_series(cochlea):
    table = cochlea.calibration.table
    angles = np.linspace(float(table.first), float(table.last), 50)
    x = np.linspace(-1, 1, 50)
    deviation = np.random.default_rng(0).normal(size=NUM_MODES) * UNIT_SD
    series = np.zeros((len(COLUMNS), 1 + max(k for _, k in MODES)))
    for (row, k), value in zip(MODES, deviation, strict=True):
        series[row, k] = value
    found = values_of(cochlea, strayed(table.powers, deviation), angles) - values_of(cochlea, table.powers, angles)
    np.testing.assert_allclose(found, [np.polynomial.chebyshev.chebval(x, one) for one in series], atol=1e-9)


def test_deviations_of_centres_have_the_sd_that_is_named():
    """Over draws, and over the duct as Chebyshev polynomials count it: at the cosines of even angles."""
    x = np.cos((np.arange(64) + 0.5) * np.pi / 64)
    for row, part in ((COLUMNS.index("dr"), 1.0), (COLUMNS.index("c2"), 0.4)):
        sd = np.array([UNIT_SD[i] for i, (own, _) in enumerate(MODES) if own == row])
        terms = np.polynomial.chebyshev.chebvander(x, len(sd) - 1) * sd
        assert np.sqrt(np.mean(np.sum(np.square(terms), axis=1))) == pytest.approx(part, rel=1e-9)


def test_the_evidence_is_that_of_a_gaussian():
    """Its differences between SDs are those of SciPy's density of the image, parameters and deviations summed out."""
    rng, p, n, noise = np.random.default_rng(1), 3, 120, 0.7
    q = p + NUM_MODES
    J, mean, state = rng.normal(size=(n, q)), rng.normal(size=q), rng.normal(size=q)
    own = np.diag([1.0, 2.0, 3.0])
    image = J @ rng.normal(size=q) + noise * rng.normal(size=n)
    seen = View(J.T @ J / noise**2, J.T @ (image - J @ state) / noise**2, 0.3)
    found, true = [], []
    for sd in (0.02, 0.1, 0.5):
        P = np.zeros((q, q))
        P[:p, :p], P[p:, p:] = own, np.diag(1 / np.square(sd * UNIT_SD))
        found.append(_evidence(seen, state, mean, P))
        true.append(multivariate_normal(J @ mean, J @ np.linalg.inv(P) @ J.T + noise**2 * np.eye(n)).logpdf(image))
    np.testing.assert_allclose(np.diff(found), np.diff(true), rtol=1e-6)


def drawn(cochlea, misfit, noise, count=NUM_DRAWS):
    """Draws about the mean, and the deviations of their sections."""
    theta, prior, moved = cochlea.mean(), cochlea.prior(), misfit.response * misfit.mode_sd
    covariance = noise + moved @ moved.T
    posterior = ShapePosterior(
        theta, theta, covariance, prior.lower, prior.upper, cochlea.parameter_names, "sandwich", 1.0, False
    )
    draws = draw_cochleae(cochlea, posterior, misfit, 0, count)
    own = cochlea.calibration.table.powers
    size = own.shape[1]
    plain = [np.polynomial.chebyshev.cheb2poly(one) for one in np.eye(size)]
    basis = np.stack([np.pad(one, (0, size - len(one))) for one in plain])  # a row for each Chebyshev polynomial
    series = (draws.powers - own)[..., ::-1] @ np.linalg.inv(basis)
    columns = [series[:, row, k] for row, k in MODES]
    return draws, np.stack(columns, axis=1), covariance


def test_draws_have_the_joint_covariance(cochlea):
    """Of parameters C = noise + R S R', of deviations S, between them -R S: to what 4000 draws leave."""
    p, rng = len(cochlea.mean()), np.random.default_rng(2)
    response = rng.normal(size=(p, NUM_MODES)) * cochlea.sd()[:, None] * 0.2
    misfit = Misfit(0.1, response)
    noise = np.diag(np.square(0.05 * cochlea.sd()))
    draws, deviations, covariance = drawn(cochlea, misfit, noise)
    both = np.column_stack([draws.theta / np.sqrt(np.diag(covariance)), deviations / misfit.mode_sd])
    cross = -(response * misfit.mode_sd) / np.sqrt(np.diag(covariance))[:, None]
    expected = np.block(
        [
            [covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))), cross],
            [cross.T, np.eye(NUM_MODES)],
        ]
    )
    assert np.abs(np.cov(both.T) - expected).max() < 5 / np.sqrt(NUM_DRAWS)


def ends(one):
    assert one.lower is not None
    return one.upper, one.lower


def test_straying_sections_widen_what_they_move(cochlea):
    """A has a section at either end: its spread is more than that of parameters alone, turns have the same."""
    p = len(cochlea.mean())
    noise = np.diag(np.square(0.02 * cochlea.sd()))
    still, strays = (Misfit(sd, np.zeros((p, NUM_MODES))) for sd in (1e-6, 0.1))
    sds = []
    for misfit in (still, strays):
        draws, _, _ = drawn(cochlea, misfit, noise, 100)
        found = measure(cochlea, cochlea.mean(), draws)
        sds.append({name: np.subtract(*ends(found[name])) for name in ("A", "turns", "volume")})
    assert sds[1]["A"] > 3 * sds[0]["A"]
    assert sds[1]["volume"] > sds[0]["volume"]
    assert sds[1]["turns"] == pytest.approx(sds[0]["turns"], rel=1e-6)
