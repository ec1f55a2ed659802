"""What a person looks at: pictures of a stored result, and a page that holds them."""

from logishape.report.densities import densities
from logishape.report.effects import effects
from logishape.report.evolution import evolution
from logishape.report.figures import KINDS, figure, save, write_figures
from logishape.report.montage import montage
from logishape.report.page import write_page
from logishape.report.rebuild import rebuild_page
from logishape.report.stored import Stored, read_stored, results_in
from logishape.report.uncertainty import uncertainty

__all__ = [
    "KINDS",
    "Stored",
    "densities",
    "effects",
    "evolution",
    "figure",
    "montage",
    "read_stored",
    "rebuild_page",
    "results_in",
    "save",
    "uncertainty",
    "write_figures",
    "write_page",
]
