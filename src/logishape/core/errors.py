"""The errors a user can meet, each one sentence: what was expected, what was found, what to try."""


class LogishapeError(Exception):
    """Everything logishape raises on purpose."""


class InputError(LogishapeError, ValueError):
    """What was given cannot be used as it is."""


class FitError(LogishapeError, RuntimeError):
    """A fit ended in a state that should not be used; raised by `Fit.check()`."""
