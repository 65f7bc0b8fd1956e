"""A map of one timeline with a slider over its epochs: homes, and the clients that get a new home."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.timeline.epoch import Epoch
from relocbench.reports.map.colours import server_colours
from relocbench.reports.map.figure import MOST_NUMBERED
from relocbench.reports.moving.rows import ScheduleRow
from relocbench.reports.moving.summary import Line, Summary
from relocbench.reports.pages.figures import figure, line, points
from relocbench.reports.pages.method_style import BAD, REFERENCE, Style
from relocbench.runs.timeline.replay_rows import EpochRow, read_rows

SCRIPT = Path(__file__).parent / "epochs.js"
# The page shows at most this many epochs, and this many positions in all of them together.
MOST_FRAMES = 120
MOST_POSITIONS = 60_000
# At most this many clients are drawn, evenly spaced by number.
MOST_CLIENTS = 1_000
# A plot over time has at most this many points.
MOST_POINTS = 400
# Positions are sent as integers of 16 bits.
STEPS = 65_000
HEIGHT = 520


@dataclass(frozen=True)
class _Frame:
    """One epoch on the map: the drawn clients, and for each shown line their homes and the homes before."""

    epoch: Epoch
    drawn: IntArray
    home: list[IntArray]
    before: list[IntArray]


class EpochMaps:
    """The maps of one timeline under two policies, with what happened over time.

    Parameters
    ----------
    summary
        The results. The timeline is the first one of the middle group.
    """

    def __init__(self, summary: Summary) -> None:
        group = summary.groups[len(summary.groups) // 2]
        self.subject = next(one for one in summary.results.subjects if one.group == group)
        self.group = group
        self.lines = _chosen(summary, group)
        self._summary = summary
        folder = summary.results.replays
        self._rows = [list(read_rows(folder / self._row(line).replay)) for line in self.lines]
        self._timeline = self.subject.timeline()
        self._frames = self._read_frames()
        self._first = max(
            range(len(self._frames)),
            key=lambda at: sum(int((before >= 0).sum()) for before in self._frames[at].before),
        )

    def _row(self, line: Line) -> ScheduleRow:
        return next(row for row in line.rows if row.hash == self.subject.hash)

    @property
    def shown(self) -> str:
        """Which epochs and clients are shown, as a sentence; empty if all are."""
        parts = []
        if len(self._frames) < self.subject.epochs:
            parts.append(
                f"{len(self._frames)} of {self.subject.epochs:,} epochs are shown; a new home is one since the epoch "
                "shown before."
            )
        most = max(len(frame.epoch.clients) for frame in self._frames)
        if most > MOST_CLIENTS:
            parts.append(f"At most {MOST_CLIENTS:,} of {most:,} clients are drawn.")
        return " ".join(parts)

    def _read_frames(self) -> list[_Frame]:
        rows = self._rows[0]
        mean = max(1.0, min(MOST_CLIENTS, sum(row.clients for row in rows) / len(rows)))
        count = max(2, min(len(rows), MOST_FRAMES, int(MOST_POSITIONS / mean)))
        chosen = set(np.unique(np.linspace(0, len(rows) - 1, count).round().astype(int)).tolist())
        frames: list[_Frame] = []
        # The home of each client in the epoch shown before, and since when it is present; -1 if it was absent.
        last: list[dict[int, int]] = [{} for _ in self.lines]
        moved: list[dict[int, int]] = [{} for _ in self.lines]
        present: set[int] = set()
        for epoch in self._timeline.epochs():
            clients = epoch.clients.tolist()
            stayed = present.intersection(clients)
            for now, gone, row in zip(last, moved, (rows[epoch.number] for rows in self._rows), strict=True):
                homes = dict(zip(clients, row.home, strict=True))
                for client in stayed:
                    if now[client] != homes[client]:
                        gone.setdefault(client, now[client])
                now.clear()
                now.update(homes)
            present = set(clients)
            if epoch.number not in chosen:
                continue
            drawn = np.unique(
                np.linspace(0, len(clients) - 1, min(len(clients), MOST_CLIENTS)).round().astype(np.int32)
            )
            home = [np.array(rows[epoch.number].home, np.int32)[drawn] for rows in self._rows]
            before = [np.array([gone.get(clients[at], -1) for at in drawn], np.int32) for gone in moved]
            frames.append(_Frame(epoch, drawn, home, before))
            for gone in moved:
                gone.clear()
        return frames

    def maps(self) -> list[tuple[str, go.Figure]]:
        """Draw the maps.

        Returns
        -------
        list
            A title and a map for each shown line. The script of :meth:`script` moves them to other epochs.
        """
        network = self._timeline.network
        colours = server_colours(network)
        frame = self._frames[self._first]
        low, high = self._box()
        panels = []
        for number, shown in enumerate(self.lines):
            plot = figure(x="km", y="km", height=HEIGHT, xaxis_constrain="domain", yaxis_constrain="domain")
            plot.update_layout(yaxis_scaleanchor="x", yaxis_scaleratio=1)
            plot.update_xaxes(range=[low[0], high[0]])
            plot.update_yaxes(range=[low[1], high[1]])
            for name, style in (
                ("to the former home", Style(REFERENCE, "dot")),
                ("to the new home", Style(BAD)),
            ):
                plot.add_trace(
                    line(name, style, x=[], y=[], mode="lines", hoverinfo="skip", line={"width": 1}, opacity=0.7)
                )
            x, y = frame.epoch.instance.client_x[frame.drawn], frame.epoch.instance.client_y[frame.drawn]
            size = 7 if len(frame.drawn) <= 600 else 4.5
            plot.add_trace(
                go.Scatter(
                    x=x.tolist(),
                    y=y.tolist(),
                    mode="markers",
                    name="client, coloured by home",
                    marker={
                        "size": size,
                        "color": [colours[server] for server in frame.home[number]],
                        "line": {"width": 0},
                    },
                    hovertemplate="home: server %{customdata}<extra></extra>",
                    customdata=frame.home[number].tolist(),
                )
            )
            ring = {"symbol": "circle-open", "size": size + 5, "color": BAD, "line": {"width": 2}}
            plot.add_trace(
                go.Scatter(x=[], y=[], mode="markers", name="client with a new home", marker=ring, hoverinfo="skip")
            )
            numbered = network.n_servers <= MOST_NUMBERED
            servers = range(network.n_servers)
            plot.add_trace(
                go.Scatter(
                    x=network.server_x.tolist(),
                    y=network.server_y.tolist(),
                    mode="markers+text" if numbered else "markers",
                    name="server",
                    text=[f"<b>{server}</b>" for server in servers],
                    textposition="middle center",
                    textfont={"size": 10, "color": "#ffffff"},
                    marker={
                        # Many servers are drawn open: clients of a trace of cells are at the places of servers.
                        "symbol": "square" if numbered else "square-open",
                        "size": 17 if numbered else 11,
                        "color": colours,
                        "line": {"width": 1.5, "color": REFERENCE if numbered else colours},
                    },
                    **points([f"server {server}" for server in servers]),
                )
            )
            plot.update_layout(meta={"epochs": "map", "line": number})
            panels.append((shown.name, plot))
        return panels

    def series(self) -> list[tuple[str, go.Figure]]:
        """Draw handovers and cost over time.

        Returns
        -------
        list
            A title and a plot for each panel. The script marks the epoch that the maps show.
        """
        bounds = [row for row in self._summary.results.bounds if row.hash == self.subject.hash]
        # The mean over some epochs, where there are more epochs than pixels.
        every = -(-len(bounds) // MOST_POINTS)
        minutes = [row.start / 60 for row in bounds[::every]]
        colours = (BAD, "#2f9e77")
        handovers = figure(x="minutes", y="", height=260)
        cost = figure(x="minutes", y="", height=260)
        thin: dict[str, Any] = {"mode": "lines", "line": {"width": 1.5}}
        for number, (shown, rows) in enumerate(zip(self.lines, self._rows, strict=True)):
            style = Style(colours[number % len(colours)])
            counts = _means([row.handovers for row in rows], every)
            costs = _means([_per_publication(row) for row in rows], every)
            hover = [
                f"{shown.name}, minute {at:g}: {one:.4g} handovers" for at, one in zip(minutes, counts, strict=True)
            ]
            handovers.add_trace(line(shown.name, style, x=minutes, y=counts, **thin, **points(hover)))
            hover = [f"{shown.name}, minute {at:g}: {one:.4f} ms" for at, one in zip(minutes, costs, strict=True)]
            cost.add_trace(line(shown.name, style, x=minutes, y=costs, **thin, **points(hover)))
        least = _means([row.bound / (row.publications or 1) for row in bounds], every)
        hover = [f"bound, minute {at:g}: {one:.4f} ms" for at, one in zip(minutes, least, strict=True)]
        grey = Style(REFERENCE, "dash")
        cost.add_trace(line("certified bound", grey, x=minutes, y=least, **thin, **points(hover)))
        for plot in (handovers, cost):
            plot.update_layout(meta={"epochs": "series"}, margin={"l": 46, "r": 10, "t": 8, "b": 42})
            plot.update_yaxes(rangemode="tozero")
        mean = "" if every == 1 else f", mean of {every}"
        return [(f"Handovers per epoch{mean}", handovers), (f"Cost of an epoch, ms per publication{mean}", cost)]

    def script(self) -> str:
        """Return the script with the data of all shown epochs.

        Returns
        -------
        str
            JavaScript.
        """
        network = self._timeline.network
        low, high = self._box()
        data = {
            "first": self._first,
            "low": low,
            "step": [(upper - lower) / STEPS for lower, upper in zip(low, high, strict=True)],
            "servers": [network.server_x.tolist(), network.server_y.tolist()],
            "colours": server_colours(network),
            "names": [line.name for line in self.lines],
            "frames": [self._frame_data(frame, low, high) for frame in self._frames],
        }
        text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        return f"const EPOCHS = {text};\n{SCRIPT.read_text(encoding='utf-8')}"

    def _frame_data(self, frame: _Frame, low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
        instance = frame.epoch.instance
        return {
            "epoch": frame.epoch.number,
            "minute": round(frame.epoch.start / 60, 3),
            "clients": instance.n_clients,
            "x": _packed(instance.client_x[frame.drawn], low[0], high[0]),
            "y": _packed(instance.client_y[frame.drawn], low[1], high[1]),
            "home": [_integers(home) for home in frame.home],
            "moved": [
                [[at, int(before[at])] for at in np.flatnonzero(before >= 0).tolist()] for before in frame.before
            ],
        }

    def _box(self) -> tuple[list[float], list[float]]:
        """Return the corners of the field."""
        network = self._timeline.network
        xs = [network.server_x, *(frame.epoch.instance.client_x for frame in self._frames)]
        ys = [network.server_y, *(frame.epoch.instance.client_y for frame in self._frames)]
        low = [float(min(values.min() for values in group)) for group in (xs, ys)]
        high = [float(max(values.max() for values in group)) for group in (xs, ys)]
        space = [max(0.02 * (upper - lower), 1e-6) for lower, upper in zip(low, high, strict=True)]
        return (
            [value - more for value, more in zip(low, space, strict=True)],
            [value + more for value, more in zip(high, space, strict=True)],
        )


def _chosen(summary: Summary, group: str) -> list[Line]:
    """Return the two lines that the maps compare: the first method at its best period, and the best other policy."""
    best = summary.best(group, summary.main)
    rest = [line for line in summary.main_lines if line.group == group and line is not best]
    aware = [line for line in rest if line.counts_relocation] or rest
    other = min(aware, key=lambda line: line.cost.mean, default=None)
    return [line for line in (best, other) if line is not None]


def _means(values: Sequence[float], every: int) -> list[float]:
    """Return the means of consecutive values, some at a time."""
    return [float(np.mean(values[at : at + every])) for at in range(0, len(values), every)]


def _per_publication(row: EpochRow) -> float:
    return row.total / row.publications if row.publications else 0.0


def _packed(values: FloatArray, low: float, high: float) -> str:
    return _integers(((values - low) / (high - low) * STEPS).round())


def _integers(values: Any) -> str:
    return base64.b64encode(np.asarray(values).astype("<u2").tobytes()).decode()
