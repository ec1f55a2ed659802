"""The learned distance of a cochlea: the network that comes with the package or one trained for a calibration."""

import hashlib
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import PARAMETERS, Calibration
from logishape.cochlea.duct import DEFORMABLE, FREE, Duct
from logishape.cochlea.network import Network, Weights
from logishape.core.arrays import AnyArray, like
from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file
from logishape.shapes.base import AbstractShapeWithDerivatives, Derivatives

DEFAULT_FILE = Path(__file__).parent / "data" / "distance.npz"
FORMAT, VERSION = "logishape learned distance", 1
NAMES = (*DEFORMABLE, "section_scale", "theta_max", "apex_offset")  # what a segmentation leaves free
MARGIN_MM = 1.5  # of the box of positions around all shapes
_MOST_BYTES = 1 << 26
_DAMAGES = (  # what readers of zips and arrays raise where bytes are not what they should be
    *(OSError, ValueError, TypeError, KeyError, EOFError, MemoryError, SyntaxError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error),
)


class LearnedDuct(AbstractShapeWithDerivatives):
    """A duct seen through a network: its distance is the network's, its form, extent and parameters are its own."""

    shape: Duct
    network: Network

    def __init__(self, shape: Duct, network: Network):
        strange = [name for name in shape.free if name not in network.names]
        if strange:
            raise InputError(
                f"the learned distance knows the parameters {', '.join(network.names)} but {strange[0]} is free; "
                "leave it out, or take another distance."
            )
        if network.mark != mark_of(shape.calibration, network.names):
            raise InputError(
                "the network was trained for the sections and the box of another calibration; train one for this one "
                "with logishape train-distance --calibration, or take another distance."
            )
        self.shape, self.network = shape, network

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As the duct's."""
        return self.shape.parameter_names

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """As the duct's."""
        return self.shape.extent(theta)

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """The network's distance, mm."""
        return self.network.level(self._whole(theta, points), points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Derivatives:
        """The network's distance and its derivatives."""
        found = self.network.derivatives(self._whole(theta, points), points)
        columns = np.array([self.network.names.index(name) for name in self.parameter_names])
        return found._replace(jacobian=found.jacobian[:, columns])

    def _whole(self, theta: Float[AnyArray, " p"], points: AnyArray) -> Float[jax.Array, " q"]:
        """All parameters that the network knows; those that are not free have their values in the calibration."""
        form = self.shape.form(theta, points)
        values = [form.end if name == "theta_max" else getattr(form, name) for name in self.network.names]
        return jax.numpy.stack(list(like(values, points)))


def mark_of(calibration: Calibration, names: tuple[str, ...]) -> str:
    """What tells one set of sections, ends and box from another: their digest."""
    chosen = [PARAMETERS.index(name) for name in names]
    made_with = (calibration.constants, calibration.table, calibration.start, calibration.end, calibration.depths)
    numbers = [*jax.tree.leaves(made_with), calibration.lower[chosen], calibration.upper[chosen]]
    text = " ".join(f"{number:.9g}" for row in numbers for number in np.ravel(row))
    return hashlib.sha256(f"{' '.join(names)} {text}".encode()).hexdigest()[:16]


def empty_network(calibration: Calibration, weights: Weights) -> Network:
    """A network for the cochleae of a calibration: its boxes and mark, with these weights."""
    chosen = [PARAMETERS.index(name) for name in NAMES]
    lower, upper = calibration.lower[chosen], calibration.upper[chosen]
    duct = Duct(calibration, tuple(name for name in FREE if name in NAMES), "level")
    low, high = duct.box()
    mark = mark_of(calibration, NAMES)
    return Network(NAMES, mark, lower, upper, low - MARGIN_MM, high + MARGIN_MM, weights)


def write_network(path: str | Path, network: Network) -> None:
    """Writes a network, in single precision."""
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **_plain(network))


def load_network(file: str | Path | None = None) -> Network:
    """The network in a file of `logishape train-distance`; the package's own if none is given."""
    return _default_network() if file is None else _read(Path(file))


@cache
def _default_network() -> Network:
    return _read(DEFAULT_FILE)


def _plain(network: Network) -> dict[str, Any]:
    fields = {"format": FORMAT, "version": VERSION, "names": np.array(network.names), "mark": network.mark}
    fields |= {name: getattr(network, name) for name in ("lower", "upper", "low", "high")}
    for kind, layers in network.weights._asdict().items():
        for k, (matrix, offset) in enumerate(layers):
            fields[f"{kind}_{k}"] = np.vstack([np.asarray(matrix, np.float32), np.asarray(offset, np.float32)[None]])
    return fields


def _read(path: Path) -> Network:
    arrays = read_arrays(path, "a network of logishape train-distance")
    try:
        if str(arrays["format"]) != FORMAT or int(arrays["version"]) != VERSION:
            raise ValueError
        weights = Weights(_layers(arrays, "tuning"), _layers(arrays, "layers"))
        boxes = {name: arrays[name] for name in ("lower", "upper", "low", "high")}
        names = tuple(str(name) for name in arrays["names"].tolist())
        network = Network(names, str(arrays["mark"]), weights=weights, **boxes)
        points = np.zeros((1, 3), np.float32)
        jax.eval_shape(network.level, network.lower, points)  # an error where layers do not fit
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(network)):
            raise ValueError
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"{path.name} should be a network of logishape train-distance, version {VERSION}, but is not or is "
            "damaged; train it anew."
        ) from error
    return network


def _layers(arrays: dict[str, np.ndarray], kind: str) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    rows = [arrays[f"{kind}_{k}"] for k in range(sum(name.startswith(f"{kind}_") for name in arrays))]
    return tuple((row[:-1], row[-1]) for row in rows)


def read_arrays(path: Path, what: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; no pickle, and no more bytes than a network has."""
    refused = InputError(f"{path} should be {what} but cannot be read as one; check the path, or make it again.")
    if not path.is_file():
        raise refused
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise refused
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except _DAMAGES as error:
        raise refused from error
