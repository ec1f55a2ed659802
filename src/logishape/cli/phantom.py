"""`logishape phantom`: synthetic temporal-bone CTs with known truth."""

from pathlib import Path
from typing import Annotated, Any

import typer

from logishape.cli.terminal import prepare_jax, stages

_SIDES, _LUMENS = ("right", "left"), ("fluid", "air")


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the phantoms.")],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many.")] = 1,
    side: Annotated[str, typer.Option(help="right, left, both, or mixed (in turn).")] = "mixed",
    lumen: Annotated[str, typer.Option(help="fluid, air, or mixed (in turn).")] = "mixed",
    spacing: Annotated[float, typer.Option(help="Voxel size, mm.")] = 0.2,
    size: Annotated[float | None, typer.Option(help="Field of view, mm.")] = None,
    point_spread: Annotated[float, typer.Option(help="SD of the point spread, mm.")] = 0.12,
    noise: Annotated[float, typer.Option(help="SD of the noise, HU.")] = 150.0,
    noise_correlation: Annotated[float, typer.Option(help="Smoothing SD of the noise, mm; 0 is white.")] = 0.12,
    gain: Annotated[float, typer.Option(help="Image units per HU.")] = 1.0,
    offset: Annotated[float, typer.Option(help="The image value of 0 HU.")] = 0.0,
    orientation: Annotated[str, typer.Option(help="axis, oblique or random.")] = "axis",
    seed: Annotated[int, typer.Option(help="Of the first phantom; the others count on.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier phantoms.")] = False,
) -> None:
    """Make phantom CTs with a known cochlea: ct.nii.gz, and for each ear truth, landmarks and parameters."""
    prepare_jax()
    from logishape.cochlea.phantom import make_phantom
    from logishape.cochlea.phantom_files import write_phantom
    from logishape.cochlea.phantom_options import PhantomOptions
    from logishape.core.errors import InputError

    if side not in (*_SIDES, "both", "mixed") or lumen not in (*_LUMENS, "mixed"):
        raise InputError(f"side and lumen are {side!r} and {lumen!r}; see logishape phantom --help for the choices.")
    given: Any = {
        "spacing_mm": spacing,
        "size_mm": size,
        "point_spread_mm": point_spread,
        "noise_hu": noise,
        "noise_correlation_mm": noise_correlation,
        "hu_gain": gain,
        "hu_offset": offset,
        "orientation": orientation,
    }
    with stages(is_quiet=False) as told:
        for k in range(number):
            folder = out / f"phantom-{seed + k:03d}"
            told(f"phantom {k + 1} of {number}")
            one = _SIDES[k % 2] if side == "mixed" else side
            filling = _LUMENS[(k // 2) % 2] if lumen == "mixed" else lumen
            options = PhantomOptions(side=one, lumen=filling, **given)  # pyright: ignore[reportArgumentType]
            write_phantom(folder, make_phantom(options, seed + k), overwrite)
    typer.echo(f"{number} phantom{'s' if number > 1 else ''} in {out}")
