"""Configure Sphinx; `make docs` builds the site without network access, and a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from commands import describe_commands

from subswarm import __version__

project = "subswarm"
author = "The subswarm developers"
copyright = "the subswarm developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "pictures"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes of several classes have the same names, which would be ambiguous references

html_theme = "furo"
html_title = "subswarm"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def _insert_commands(app: object, name: str, source: list[str]) -> None:
    """Fill the page of the command line with what the program says about itself."""
    if name == "command-line":
        source[0] = source[0].replace("<!-- commands -->", describe_commands())


def setup(app: object) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", _insert_commands)
