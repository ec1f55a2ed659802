"""How a fit ended, as a number inside compiled code and as a sentence for people."""

import enum


class Status(enum.IntEnum):
    """How a fit ended. Only `CONVERGED` is free of a caveat."""

    CONVERGED = 0
    STALLED = 1
    OUT_OF_STEPS = 2
    AT_BOX = 3
    NO_INFORMATION = 4
    COLLAPSED = 5
    REFUSED = 6

    @property
    def advice(self) -> str:
        """One sentence: what happened and what to try."""
        return _ADVICE[self]

    @property
    def is_usable(self) -> bool:
        """Whether the log joint is stationary here, inside the box or on its border."""
        return self in (Status.CONVERGED, Status.AT_BOX)


_ADVICE = {
    Status.CONVERGED: "The log joint is stationary inside the box; look at the posterior for its width.",
    Status.STALLED: "No step raised the log joint although its gradient is not zero; "
    "check that the shape's level is smooth in its parameters, or use a double-precision observation.",
    Status.OUT_OF_STEPS: "The fit was still rising when its rounds ran out; "
    "raise max_rounds, or start closer to the object.",
    Status.AT_BOX: "The best parameters lie on the border of the prior's box; "
    "widen the box if those values are plausible, otherwise distrust the fit.",
    Status.NO_INFORMATION: "The shape explains the image hardly better than no shape would: inside and outside "
    "look alike, or there is only noise; check the appearance start and the region of interest.",
    Status.COLLAPSED: "The shape vanished, swallowed the whole region, or became thinner than the reference "
    "length; start closer, lower the reference length, or tighten the box.",
    Status.REFUSED: "The case could not begin, for the reason in its `problem`; mend the image or the start.",
}
