"""The intact cases that fuzz.py damages: every reader with a small file, and the command that reads it."""

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.io.dicom_files import AFFINE, ct, make_series, save

from logishape.cochlea.calibration import DEFAULT_FILE, load_calibration
from logishape.cochlea.learned import DEFAULT_FILE as NETWORK_FILE
from logishape.cochlea.learned import load_network
from logishape.cochlea.result import FORMAT, VERSION
from logishape.core.volume import Volume
from logishape.io import (
    read_landmarks,
    read_mask,
    read_ply,
    read_result,
    read_scan,
    read_stl,
    write_ply,
    write_stl,
    write_volume,
)


class Subject(NamedTuple):
    """An intact case: its files, those that are damaged, how it is read, and the command that reads it, if any.

    In the command {} stands for the folder of the files.
    """

    files: dict[str, bytes]
    damaged: tuple[str, ...]
    read: Callable[[Path], Any]
    words: tuple[str, ...] = ("cochlea", "{}", "-o", "{}/../out")


def subjects() -> dict[str, Subject]:
    """All readers with a small file for each."""
    volume = Volume(ct().data.astype(np.int16), AFFINE)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found = {}
        for name in ("ct.nii", "ct.nii.gz", "ct.nrrd", "ct.mha"):
            write_volume(folder / name, volume)
            found[name] = _single(folder / name, read_scan)
        write_volume(folder / "raw.nrrd", volume, compress=False)
        write_volume(folder / "raw.mha", volume, compress=False)
        found["raw.nrrd"] = _single(folder / "raw.nrrd", read_scan)
        found["raw.mha"] = _single(folder / "raw.mha", read_scan)
        found["ct.nhdr"] = _detached(folder / "raw.nrrd", b"\n\n", b"\ndata file: ct.raw\n\n", "ct.nhdr")
        found["ct.mhd"] = _detached(folder / "raw.mha", b"LOCAL\n", b"ct.raw\n", "ct.mhd")
        write_volume(folder / "mask.nii.gz", volume.with_data((volume.data > 300).astype(np.uint8)))
        found["mask.nii.gz"] = _single(folder / "mask.nii.gz", read_mask)
        write_stl(folder / "a.stl", np.eye(3), np.array([[0, 1, 2]]))
        found["a.stl"] = _single(folder / "a.stl", read_stl)
        write_ply(folder / "a.ply", np.eye(3), np.array([[0, 1, 2]]), {"angle_degrees": np.arange(3)})
        found["a.ply"] = _single(folder / "a.ply", read_ply)
        found |= _dicom(folder, volume) | _texts(folder)
        found["result"] = _result(folder / "result", volume)
    return found


def _single(path: Path, read: Callable[[Path], Any]) -> Subject:
    words = {read_mask: ("evaluate", f"{{}}/{path.name}", f"{{}}/{path.name}"), read_stl: (), read_ply: ()}
    usual = ("cochlea", f"{{}}/{path.name}", "-o", "{}/../out")
    return Subject(
        {path.name: path.read_bytes()},
        (path.name,),
        lambda place: read(place / path.name),
        words.get(read, usual),
    )


def _beside_ct(folder: Path, path: Path, option: str, read: Callable[[Path], Any]) -> Subject:
    """A file that is given to the command along with a CT."""
    one = _single(path, read)
    files = {**one.files, "ct.nii": (folder / "ct.nii").read_bytes()}
    return one._replace(files=files, words=("cochlea", "{}/ct.nii", "-o", "{}/../out", option, f"{{}}/{path.name}"))


def _detached(path: Path, end: bytes, replaced: bytes, name: str) -> Subject:
    head, _, data = path.read_bytes().partition(end)
    return Subject(
        {name: head + replaced, "ct.raw": data},
        (name, "ct.raw"),
        lambda place: read_scan(place / name),
        ("cochlea", f"{{}}/{name}", "-o", "{}/../out"),
    )


def _dicom(folder: Path, volume: Volume) -> dict[str, Subject]:
    """A series as it is, deflated, run-length encoded and as JPEG 2000, and the first in a zip."""
    from pydicom.uid import DeflatedExplicitVRLittleEndian, JPEG2000Lossless, RLELossless

    found = {}
    for kind in ("plain", "deflated", "rle", "jpeg"):
        series = make_series(volume)
        for piece in series:
            if kind == "rle":
                piece.compress(RLELossless)
            elif kind == "deflated":
                piece.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
            elif kind == "jpeg":
                _pack_jpeg(piece, JPEG2000Lossless)
        files = {path.name: path.read_bytes() for path in sorted(save(folder / kind, series).iterdir())}
        found[f"dicom {kind}"] = Subject(files, tuple(files), read_scan)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in found["dicom plain"].files.items():
            archive.writestr(name, content)
    (folder / "ct.zip").write_bytes(packed.getvalue())
    found["ct.zip"] = _single(folder / "ct.zip", read_scan)
    return found


def _pack_jpeg(piece: Any, syntax: Any) -> None:
    from PIL import Image
    from pydicom.encaps import encapsulate

    stream = io.BytesIO()
    pixels = np.frombuffer(piece.PixelData, "<u2").reshape(piece.Rows, piece.Columns)
    Image.fromarray(pixels).save(stream, format="JPEG2000", irreversible=False, no_jp2=True)
    piece.PixelData = encapsulate([stream.getvalue()])
    piece["PixelData"].VR = "OB"
    piece["PixelData"].is_undefined_length = True
    piece.PixelRepresentation = 0
    piece.file_meta.TransferSyntaxUID = syntax


def _texts(folder: Path) -> dict[str, Subject]:
    texts = {
        "marks.json": '{"side": "left", "landmarks_ras_mm": {"apex": [1, 2.5, 3], "base": [4, 5, -6e1]}}',
        "marks.mrk.json": '{"markups": [{"coordinateSystem": "LPS", "coordinateUnits": "mm", "controlPoints": '
        '[{"label": "apex", "position": [1, 2, 3], "positionStatus": "defined"}]}]}',
        "marks.fcsv": "# Markups fiducial file version = 4.11\n# CoordinateSystem = LPS\n# columns = "
        "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n1,1.5,2,3,0,0,0,1,1,1,0,apex,,\n",
    }
    found = {}
    for name, text in texts.items():
        (folder / name).write_text(text)
        found[name] = _beside_ct(folder, folder / name, "--landmarks", read_landmarks)
    found["calibration.json"] = _beside_ct(folder, DEFAULT_FILE, "--calibration", load_calibration)
    found["distance.npz"] = _beside_ct(folder, NETWORK_FILE, "--weights", load_network)
    return found


def _result(folder: Path, volume: Volume) -> Subject:
    folder.mkdir()
    entry = {"value": 1.5, "sd": 0.1, "lower": 1.0, "upper": None}
    record = {"format": FORMAT, "version": VERSION, "side": "left", "trusted": True, "flags": [], "notes": []}
    record |= {"status": "converged", "parameters": {"a": entry}, "measurements": {"A": entry, "B": entry}}
    (folder / "result.json").write_text(json.dumps(record))
    share = volume.data / np.float32(volume.data.max())
    for name in ("segmentation", "shape", "probability", "marginal"):
        data = (share > 0.5).astype(np.uint8) if name in ("segmentation", "shape") else share
        write_volume(folder / f"{name}.nii.gz", volume.with_data(data))
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = ("evaluate", "{}", "{}/segmentation.nii.gz")
    return Subject(files, ("result.json", "result.json", *sorted(files)), read_result, words)
