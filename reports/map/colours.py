"""Colours for the servers of a map: neighbours have clearly different colours."""

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray

# White text is readable on these colours, and they are visible on light and on dark backgrounds.
PALETTE = (
    "#2f6fd0",
    "#d9542b",
    "#2c8f3c",
    "#c2388f",
    "#8a6d1d",
    "#159a9c",
    "#7a48c8",
    "#d03545",
    "#5f6b7a",
    "#a0522d",
    "#6b8e00",
    "#e0559f",
)
PASSES = 4
# Readers tell two colours apart without effort at about this distance in CIELAB.
CLEARLY_DIFFERENT = 25.0
# From linear RGB to XYZ, and the white of D65.
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def colours_by_number(count: int) -> list[str]:
    """Return colours for things without positions, such as topics.

    Parameters
    ----------
    count
        The number of things.

    Returns
    -------
    list of str
        Colours as ``#rrggbb``, which repeat after the length of the palette.
    """
    return [PALETTE[number % len(PALETTE)] for number in range(count)]


def server_colours(instance: Instance) -> list[str]:
    """Return one colour per server.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    list of str
        Colours as ``#rrggbb``. The nearer two servers are, the more their colours differ; a colour repeats only at
        servers that are far apart.
    """
    alike = _alike(PALETTE)
    weight = _nearness(instance.server_x, instance.server_y)
    chosen = np.full(instance.n_servers, -1)
    # The first pass colours the servers one after the other, the others improve the colour of each given the rest.
    for _ in range(PASSES):
        for server in range(instance.n_servers):
            others = np.flatnonzero(chosen >= 0)
            others = others[others != server]
            chosen[server] = int((alike[:, chosen[others]] @ weight[server, others]).argmin())
    return [PALETTE[colour] for colour in chosen]


def _nearness(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return a weight for each pair of servers, which falls with the square of their distance."""
    between = np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :])
    apart = between + np.where(np.eye(len(x), dtype=bool), np.inf, 0.0)
    typical = float(np.median(apart.min(axis=1))) if len(x) > 1 else 1.0
    return 1.0 / np.maximum(between / (typical or 1.0), 0.25) ** 2


def _alike(colours: tuple[str, ...]) -> FloatArray:
    """Return for each pair of colours how hard they are to tell apart: from 1 for the same colour down to 0."""
    parts = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours])
    # Distances between colours are about those that readers perceive in the colour space CIELAB.
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = linear @ TO_XYZ.T / WHITE
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = np.stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], axis=1)
    distance = np.linalg.norm(lab[:, None, :] - lab[None, :, :], axis=2)
    return np.asarray(np.exp(-distance / CLEARLY_DIFFERENT))
