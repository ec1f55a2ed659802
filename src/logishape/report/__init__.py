"""What a person looks at: pictures of a stored result, and a page that holds them."""

from logishape.report.densities import densities
from logishape.report.effects import effects
from logishape.report.evolution import evolution
from logishape.report.figures import KINDS, figure, find_results, save, write_figures
from logishape.report.montage import montage
from logishape.report.page import write_page
from logishape.report.rebuild import every_result, rebuild_page
from logishape.report.stored import Stored, read_stored
from logishape.report.uncertainty import uncertainty

__all__ = [
    "KINDS",
    "Stored",
    "densities",
    "effects",
    "every_result",
    "evolution",
    "figure",
    "find_results",
    "montage",
    "read_stored",
    "rebuild_page",
    "save",
    "uncertainty",
    "write_figures",
    "write_page",
]
