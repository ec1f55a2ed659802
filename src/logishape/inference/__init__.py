"""Inference: labels (E), appearance (MI), shape (MS), and the one loop that joins them."""

from logishape.inference.band import is_active
from logishape.inference.batch import fit_batch
from logishape.inference.box import minimise_in_box
from logishape.inference.fit import Fit, fit
from logishape.inference.labels import (
    e_step,
    expected_label,
    log_marginal,
    prior_logit,
    prior_logit_and_jacobian,
)
from logishape.inference.model import Model, Prior, State
from logishape.inference.multistart import Multistart, multistart
from logishape.inference.objective import log_joint
from logishape.inference.options import FitOptions
from logishape.inference.reference_length import LengthProfile, profile_reference_length

__all__ = [
    "Fit",
    "FitOptions",
    "LengthProfile",
    "Model",
    "Multistart",
    "Prior",
    "State",
    "e_step",
    "expected_label",
    "fit",
    "fit_batch",
    "is_active",
    "log_joint",
    "log_marginal",
    "minimise_in_box",
    "multistart",
    "prior_logit",
    "prior_logit_and_jacobian",
    "profile_reference_length",
]
