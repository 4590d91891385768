"""Owns how the pages of this folder become a site: `make site` writes build/site."""

from importlib.metadata import version as version_of

project = "magweld"
author = "the magweld developers"
release = version_of("magweld")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"magweld {release}"
source_suffix = {".md": "markdown"}
# Headings can be linked to, as on any page of Markdown.
myst_heading_anchors = 4
# MLIR and pass pipelines have no lexer.
suppress_warnings = ["misc.highlighting_failure"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
