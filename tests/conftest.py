"""Shared settings of the test suite."""

import contextlib
import os

from jaxtyping import install_import_hook

import tests.checks  # noqa: F401 - the hook finds it by name

# Before anything imports logishape: every annotated shape and type is checked while the tests run. That doubles the
# time to trace a program, so `make test` leaves it to the tests of units; `make test-all` checks everywhere.
is_checked = os.environ.get("LOGISHAPE_CHECK_TYPES", "1") != "0"
with install_import_hook("logishape", "tests.checks.typechecked") if is_checked else contextlib.nullcontext():
    import logishape as ls

import jax
import matplotlib
import pytest
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")
settings.register_profile(
    "logishape",
    deadline=None,  # the first example compiles
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "logishape"))


@pytest.fixture
def x64():
    """Doubles inside the test, as the engine has them inside its own calls."""
    with ls.core.arrays.double_precision():
        yield


@pytest.fixture
def key():
    return jax.random.key(20)
