"""The shape step's problem on one band: the log joint as a function of the parameters alone.

Parameters are whitened by the prior's box, phi = (theta - lower)/width, so that millimetres and radians
weigh alike and single precision is enough for the work per voxel.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray, like, total
from logishape.inference.band import Band
from logishape.inference.box import minimise_in_box
from logishape.inference.labels import e_step, log_marginal, prior_logit, prior_logit_and_jacobian
from logishape.inference.model import Model, Prior

Phi = Float[AnyArray, " p"]


def whiten(prior: Prior, theta: Float[AnyArray, " p"]) -> Float[jax.Array, " p"]:
    """phi: the box becomes the unit cube."""
    return (jnp.asarray(theta) - prior.lower) / prior.widths


def unwhiten(prior: Prior, phi: Phi) -> Float[jax.Array, " p"]:
    """theta, kept inside the box against rounding."""
    return jnp.clip(prior.lower + prior.widths * phi, prior.lower, prior.upper)


def weighted_gram(D: Float[AnyArray, "n p"], weights: Float[AnyArray, " n"]) -> Float[jax.Array, "p p"]:
    """D' diag(weights) D, in the precision of D, handed back in double."""
    product = jnp.matmul((D * weights[:, None]).T, D)
    return product.astype(jnp.result_type(float))


def weighted_rows(D: Float[AnyArray, "n p"], weights: Float[AnyArray, " n"]) -> Float[jax.Array, " p"]:
    """D' weights, handed back in double."""
    return jnp.matmul(weights, D).astype(jnp.result_type(float))


class ShapeProblem(eqx.Module):
    """Log joint over the voxels of a band, up to a constant, in whitened parameters."""

    model: Model
    band: Band

    @property
    def prior_precision(self) -> Float[jax.Array, "p p"]:
        """P0 in whitened parameters."""
        widths = jnp.asarray(self.model.prior.widths)
        return widths[:, None] * self.model.prior.precision * widths

    def prior_gradient(self, phi: Phi) -> Float[jax.Array, " p"]:
        """Gradient of -log p(theta) in whitened parameters."""
        return self.prior_precision @ (phi - whiten(self.model.prior, self.model.prior.mean))

    def logits(self, phi: Phi) -> Float[jax.Array, " k"]:
        """V on the band."""
        return prior_logit(self.model, unwhiten(self.model.prior, phi), self.band.points)

    def logits_and_jacobian(self, phi: Phi) -> tuple[Float[jax.Array, " k"], Float[jax.Array, "k p"]]:
        """V and dV/dphi on the band."""
        theta = unwhiten(self.model.prior, phi)
        V, D = prior_logit_and_jacobian(self.model, theta, self.band.points)
        return V, D * like(self.model.prior.widths, D)

    def value(self, phi: Phi, V: Float[AnyArray, " k"]) -> Float[jax.Array, ""]:
        """The log joint at phi, whose logits are V; constants of the shape step left out."""
        rho = self.band.log_odds
        data = total(self.band.weights * log_marginal(V, jnp.minimum(rho, 0), jnp.minimum(-rho, 0)))
        offset = phi - whiten(self.model.prior, self.model.prior.mean)
        return data - 0.5 * offset @ self.prior_precision @ offset

    def pull(self, V: Float[AnyArray, " k"]) -> Float[jax.Array, " k"]:
        """w (u - mu): how strongly each voxel pulls the level up."""
        return self.band.weights * (e_step(V, self.band.log_odds) - jax.nn.sigmoid(V))

    def newton_decrement(self, phi: Phi) -> Float[jax.Array, ""]:
        """g' H^-1 g within the box: how far, unit-free, a point is from being stationary, whatever led there."""
        V, D = self.logits_and_jacobian(phi)
        mu = jax.nn.sigmoid(V)
        gradient = self.prior_gradient(phi) - weighted_rows(D, self.pull(V))
        hessian = weighted_gram(D, self.band.weights * mu * (1 - mu)) + self.prior_precision
        return -gradient @ minimise_in_box(hessian, gradient, -phi, 1 - phi)

    def energy_gradient(self, phi: Phi) -> Float[jax.Array, " p"]:
        """Gradient of minus the log joint, by one reverse pass over the band."""
        # In theta, not through the clipping to the box, whose derivative on the border is not one.
        theta = unwhiten(self.model.prior, phi)
        V, pull_back = jax.vjp(lambda t: prior_logit(self.model, t, self.band.points), theta)
        (data,) = pull_back(self.pull(V).astype(V.dtype))
        return self.prior_gradient(phi) - data * self.model.prior.widths
