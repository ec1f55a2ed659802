"""Principal modes of a few training shapes, and how their parameters are called."""

import numbers

import numpy as np
from jaxtyping import Float

from logishape.core.errors import InputError


def mode_names(num_modes: int) -> tuple[str, ...]:
    """mode_1, mode_2, ...: parameters in standard deviations, which `Prior.of_modes` knows by these names."""
    return tuple(f"mode_{k + 1}" for k in range(num_modes))


def choose_modes(
    deviations: Float[np.ndarray, "k q"], num_modes: int | None = None, explained: float = 0.95
) -> tuple[Float[np.ndarray, "p q"], Float[np.ndarray, " p"]]:
    """Principal modes of deviations from the mean, each one standard deviation long, and their shares of variance.

    As many as asked for, or the fewest that explain the given share.
    """
    _, singular, directions = np.linalg.svd(deviations, full_matrices=False)
    size = np.abs(deviations).max(initial=0.0)
    # The mean took one degree of freedom; what is left below rounding is no mode either.
    singular = singular[: len(deviations) - 1]
    available = int(np.count_nonzero(singular > 1e-9 * max(singular.max(initial=0.0), 1e-300))) if size > 1e-9 else 0
    if not available:
        raise InputError("the training shapes do not differ, so there are no modes; give shapes that vary.")
    ratios = singular**2 / np.sum(singular**2)
    if num_modes is None:
        if not 0 < explained <= 1:
            raise InputError(f"the explained share must lie in (0, 1] but is {explained}; try 0.95.")
        num_modes = int(np.searchsorted(np.cumsum(ratios), explained - 1e-12)) + 1
    if not isinstance(num_modes, numbers.Integral) or not 1 <= num_modes <= available:
        raise InputError(
            f"{len(deviations)} training shapes have {available} modes but {num_modes} were asked for; ask for fewer "
            "or give more shapes."
        )
    count = int(num_modes)
    modes = directions[:count] * (singular[:count, None] / np.sqrt(len(deviations) - 1))
    return modes, ratios[:count]
