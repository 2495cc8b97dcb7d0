"""Text that several outputs share: durations and package versions."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from subswarm._version import __version__

__all__ = ["format_duration", "package_versions"]


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, minutes, or hours and minutes.

    Examples
    --------
    >>> format_duration(42), format_duration(130), format_duration(7800)
    ('42 s', '2 min', '2 h 10 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that a result may depend on.

    Examples
    --------
    >>> list(package_versions())
    ['subswarm', 'python', 'numpy', 'scipy', 'scikit-learn', 'numba']
    """
    found = {"subswarm": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
