"""`logishape train-distance`: a network that knows the cochlea's signed distance, trained on exact distances."""

from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.terminal import prepare_jax, show_table, stages


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file for the network, .npz.")],
    calibration: Annotated[Path | None, typer.Option(help="Another calibration file than logishape's own.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds, each on shapes of its own.")] = 8,
    steps: Annotated[int, typer.Option(help="Steps in a round.")] = 16_000,
    shapes: Annotated[int, typer.Option(help="Shapes of a round.")] = 32_768,
    points: Annotated[int, typer.Option(min=64, help="Points about each shape.")] = 1024,
    test_shapes: Annotated[int, typer.Option(min=1, help="Unseen shapes that tell the errors at the end.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, shapes, points and steps.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier network.")] = False,
) -> None:
    """Train the distance of `--distance learned`: minutes on a GPU, days without one.

    Stopped, it goes on after the last whole round when it is called again with the same options. The network that
    comes with logishape was made with the options' defaults. Use another with `logishape cochlea --weights FILE`.
    """
    prepare_jax()
    import dataclasses

    from logishape.cochlea import load_calibration
    from logishape.cochlea.distance_errors import distance_errors
    from logishape.cochlea.train_distance import TrainOptions, train
    from logishape.core.errors import InputError

    if out.exists() and not overwrite:
        raise InputError(f"{out} is there already and would be lost; use --overwrite, or another name.")
    chosen = load_calibration(calibration)
    options = TrainOptions(rounds=rounds, steps=steps, shapes=shapes, points=points, seed=seed)
    with stages(is_quiet=False) as told:
        network = train(chosen, options, out, told.console.print)
        told("errors on shapes that it has not seen")
        found = dataclasses.asdict(distance_errors(chosen, network, (test_shapes, points), seed + 10_000))
    words = {
        "mean": "mean error within 1 mm of the surface",
        "p99": "99 % of errors",
        "zero_p95": "its zero level from the surface, 95 %",
        "zero_p999": "99.9 %",
        "zero_max": "largest",
    }
    rows = [(text, f"{found[name]:.4f} mm") for name, text in words.items()]
    rows.append(("zero level within 0.05 mm", f"{100 * found['zero_within']:.2f} %"))
    show_table(f"The learned distance in {out}", ("", ""), rows)
