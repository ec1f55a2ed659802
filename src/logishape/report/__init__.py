"""What a person looks at: pictures of a result and a page that holds them."""

from logishape.report.montage import montage
from logishape.report.page import write_page

__all__ = ["montage", "write_page"]
