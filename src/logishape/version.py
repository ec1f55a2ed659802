"""Which logishape this is."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version that is installed, or "unknown" in a source tree that is not."""
    try:
        return version("logishape")
    except PackageNotFoundError:
        return "unknown"
