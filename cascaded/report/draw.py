"""Figures drawn from their numbers, in one look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cascaded.exhibits.kinds import Dots, Figure, Lines, Pictures
from cascaded.report.look import STYLE

if TYPE_CHECKING:  # matplotlib is imported when a figure is drawn
    from matplotlib.figure import Figure as Sheet


def draw(figure: Figure, colours: Mapping[str, str]) -> Sheet:
    """Draw a figure, without its title and caption, which the page or paper around it has.

    Args:
        figure: What to draw.
        colours: A colour for every model, from `look.colours`; models without one are drawn in grey.

    Returns:
        A matplotlib figure. Save it under `matplotlib.rc_context(look.STYLE)`, or have `files.write_figure` do so.
    """
    import matplotlib as mpl

    from cascaded.report.draw_dots import draw_joined
    from cascaded.report.draw_lines import draw_lines
    from cascaded.report.draw_pictures import draw_pictures
    from cascaded.report.draw_rows import draw_rows
    from cascaded.report.draw_squares import draw_squares

    body = figure.body
    with mpl.rc_context(STYLE):
        if isinstance(body, Lines):
            return draw_lines(body, colours)
        if isinstance(body, Dots):
            return draw_joined(body, colours) if body.joined else draw_rows(body, colours)
        return draw_pictures(body) if isinstance(body, Pictures) else draw_squares(body)
