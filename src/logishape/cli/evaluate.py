"""`logishape evaluate`: how well a segmentation agrees with the truth."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.terminal import show_table

_ROWS = {
    "dice": ("Dice", ""),
    "precision": ("Precision", ""),
    "recall": ("Recall", ""),
    "hd95": ("HD95, mean of both directions", "mm"),
    "hd100": ("HD100, mean of both directions", "mm"),
    "hd95_max": ("HD95, larger direction", "mm"),
    "hd100_max": ("HD100, larger direction (Hausdorff)", "mm"),
    "mean_surface_distance": ("Mean surface distance", "mm"),
    "volume_prediction_mm3": ("Volume, prediction", "mm³"),
    "volume_truth_mm3": ("Volume, truth", "mm³"),
    "volume_error": ("Relative volume error", ""),
    "spill_mm3": ("Prediction outside the region", "mm³"),
}


def command(
    prediction: Annotated[Path, typer.Argument(help="A mask (.nii, .nii.gz, .nrrd, .mha) or a folder of results.")],
    truth: Annotated[Path, typer.Argument(help="The true mask on the same grid.")],
    region: Annotated[Path | None, typer.Option(help="A mask of where to compare.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Compare a predicted mask with the truth: overlap, surface distances and volumes."""
    from logishape.io import is_result, read_mask, read_result
    from logishape.metrics import compare

    where = None if region is None else read_mask(region)
    found = read_result(prediction).segmentation if is_result(prediction) else read_mask(prediction)
    values = dataclasses.asdict(compare(found, read_mask(truth), where))
    if as_json:
        typer.echo(json.dumps(values, indent=1))
        return
    rows = []
    for name, (words, unit) in _ROWS.items():
        value = values[name]
        if not (name == "spill_mm3" and region is None):
            rows.append((words, "none" if value is None else f"{value:.3f} {unit}".strip()))
    show_table("Agreement with the truth", ("", "value"), rows)
