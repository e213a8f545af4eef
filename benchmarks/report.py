"""From the JSON record of a run to what people read: a markdown table and a plot.

`python benchmarks/report.py FILE [--plot FILE.svg]` prints the table of an earlier run. Decides how figures
look; refuses to measure, and to hide a contender that is missing or a goal that was not reached.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


def markdown(record: Record) -> str:
    """The whole record as markdown: machine, goals, one table per question, what was left out."""
    return "\n".join([*_machine(record), *_goals(record), *_questions(record), *_left_out(record)]) + "\n"


def amount(value: float) -> str:
    """A figure with three significant digits and a thousands or millions mark."""
    for limit, divisor, mark in ((999_500, 1e6, " M"), (9_995, 1e3, " k")):
        if abs(value) >= limit:
            return f"{_three(value / divisor)}{mark}"
    return _three(value)


def _three(value: float) -> str:
    size = abs(value)
    if value == int(value) and size < 1e4:
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    align = ["---", *["---:"] * (len(head) - 1)]
    return ["", *("| " + " | ".join(row) + " |" for row in (head, align, *rows))]


def _machine(record: Record) -> list[str]:
    machine, plan = record["machine"], record["plan"]
    where = f"{machine['cores']} cores ({machine['cpu']}), {machine['memory']}, {machine['system']}"
    load = f"load {machine['load_1min']} at the start, no pinning"
    rounds = f"{plan['rounds']} rounds of {plan['seconds']:g} s, interleaved; medians"
    versions = [f"{name} {version}" for name, version in machine["libraries"].items()]
    lines = [
        f"{where}, {machine['python']}; {load}. {record['started']}, {rounds}.",
        "Versions: " + ", ".join([*versions, *machine["servers"].values()]) + ".",
    ]
    if machine["load_1min"] > machine["cores"] / 2:
        lines.append(
            "**Others used this machine at the start: trust the ratios and the CPU times, not the rates.**"
        )
    if plan["tiny"] or plan["quick"]:
        lines.append("**A shortened run: a first look, not figures to quote.**")
    return lines


def _goals(record: Record) -> list[str]:
    rows = []
    for cell in record["cells"]:
        for goal in cell["goals"]:
            sign = "≥" if goal["best"] == "high" else "≤"
            aim = "" if goal["aim"] is None else f", aim {goal['aim']:g}"
            verdict = {True: "reached", False: "**missed**", None: "not measured"}[goal["met"]]
            spread = ""
            if goal["ratios"]:
                spread = f"{goal['ratio']:.2f} [{min(goal['ratios']):.2f} to {max(goal['ratios']):.2f}]"
            subject = (
                f"{cell['question']}: {cell['title']}: {goal['of']} / {goal['against']}, {goal['metric']}"
            )
            rows.append([subject, spread, f"{sign} {goal['must']:g}{aim}", verdict])
    head = ["ratio, round by round", "median [min to max]", "must", ""]
    return ["", "### Goals", *_table(head, rows)] if rows else []


def _questions(record: Record) -> Iterator[str]:
    for question in dict.fromkeys(cell["question"] for cell in record["cells"]):
        cells = [cell for cell in record["cells"] if cell["question"] == question and cell["median"]]
        if not cells:
            continue
        yield ""
        yield f"### {question.replace('_', ' ').capitalize()}"
        if question == "throughput":
            yield from _matrix(cells)
        else:
            for cell in cells:
                yield from _cell_table(cell)


def _matrix(cells: Sequence[Record]) -> Iterator[str]:
    """Rates of all cells of one payload side by side, then the processor time of one event, all roles
    together.
    """
    for payload in dict.fromkeys(cell["conditions"]["payload"] for cell in cells):
        group = [cell for cell in cells if cell["conditions"]["payload"] == payload]
        rows = []
        for name in dict.fromkeys(name for cell in group for name in cell["median"]):
            medians = [cell["median"].get(name) for cell in group]
            rates = ["" if median is None else _rate(median) for median in medians]
            costs = ["" if median is None else amount(median["cpu_us"]) for median in medians]
            rows.append([name, *rates, *costs, _cpu(medians[0])])
        fan_out = [f"1 → {cell['conditions']['subscribers']}" for cell in group]
        costs = [f"CPU µs, {way}" for way in fan_out]
        yield from _table([f"{payload}, delivered/s", *fan_out, *costs, f"{fan_out[0]}: pub/srv/sub"], rows)


def _rate(median: Mapping[str, float]) -> str:
    lost = f" (lost {median['lost']:,.0f})" if median.get("lost") else ""
    return amount(median["delivered_per_s"]) + lost


def _cpu(median: Mapping[str, float] | None) -> str:
    if median is None:
        return ""
    return " / ".join(amount(median[f"cpu_{role}_us"]) for role in ("publisher", "server", "subscribers"))


def _cell_table(cell: Record) -> list[str]:
    metrics = list(dict.fromkeys(metric for median in cell["median"].values() for metric in median))
    head = [cell["title"], *(f"{metric} ({cell['units'].get(metric, '')})" for metric in metrics)]
    rows = [
        [name, *("" if metric not in median else amount(median[metric]) for metric in metrics)]
        for name, median in cell["median"].items()
    ]
    notes = ["", *cell["notes"]] if cell["notes"] else []
    return [*_table(head, rows), *notes]


def _left_out(record: Record) -> list[str]:
    reasons: dict[str, str] = {}
    for cell in record["cells"]:
        for name, reason in cell["skipped"].items():
            where = f" ({cell['question']}: {cell['title']})" if reason.startswith("failed") else ""
            reasons[f"{name}{where}"] = reason.splitlines()[0]
    return (
        ["", "### Left out", *(f"* {name}: {reason}" for name, reason in reasons.items())] if reasons else []
    )


_COLOURS = {
    "prxbus": "#c0392b",
    "nats": "#2e86c1",
    "redis_pipeline": "#d68910",
    "redis_plain": "#f5c06b",
    "mosquitto": "#7d3c98",
    "raw_proxy": "#7f8c8d",
    "raw_pubsub": "#bfc9ca",
    "bare_envelope": "#52be80",
}


def plot(record: Record, path: Path) -> Path:
    """Draw throughput and latency side by side into `path` (SVG or PNG by its ending). Raises ImportError
    without matplotlib.
    """
    import matplotlib as mpl

    mpl.use("svg" if path.suffix == ".svg" else "agg")
    from matplotlib import pyplot

    panels = [
        panel for panel in (_throughput_bars(record), _dict_bars(record), _latency_bars(record)) if panel[1]
    ]
    if not panels:
        raise ValueError("the record holds no throughput and no latency to draw")
    with mpl.rc_context({"svg.hashsalt": "prxbus", "font.size": 9}):
        figure, axes = pyplot.subplots(
            1, len(panels), figsize=(5 * len(panels), 4), squeeze=False, layout="constrained"
        )
        for axis, (title, series, groups) in zip(axes[0], panels, strict=True):
            width = 0.8 / len(series)
            for number, (name, values) in enumerate(series.items()):
                places = [place + number * width for place in range(len(groups))]
                axis.bar(places, values, width, label=name, color=_COLOURS.get(name))
            axis.set_xticks([place + 0.4 - width / 2 for place in range(len(groups))], groups)
            axis.set_title(title)
            axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))  # hides no bar
            axis.grid(axis="y", alpha=0.3)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)
    return path


Panel = tuple[str, dict[str, list[float]], list[str]]


def _throughput_bars(record: Record) -> Panel:
    return _rates(record, "bytes 300 B", "delivered events/s (thousands), 300 B of JSON")


def _dict_bars(record: Record) -> Panel:
    return _rates(record, "dict 300 B", "delivered events/s (thousands), dict in, dict out, 300 B")


def _rates(record: Record, payload: str, title: str) -> Panel:
    cells = [
        c for c in record["cells"] if c["question"] == "throughput" and c["conditions"]["payload"] == payload
    ]
    names = [
        name
        for name in dict.fromkeys(n for c in cells for n in c["median"])
        if all(name in c["median"] for c in cells)
    ]
    series = {name: [cell["median"][name]["delivered_per_s"] / 1e3 for cell in cells] for name in names}
    return title, series, [f"1 → {cell['conditions']['subscribers']}" for cell in cells]


def _latency_bars(record: Record) -> Panel:
    cells = [c for c in record["cells"] if c["question"] == "latency" and c["conditions"]["bytes"] == 300]
    series = {
        name: [statistics.median(run[metric] for run in runs) for metric in ("p50_us", "p99_us")]
        for cell in cells
        for name, runs in cell["runs"].items()
    }
    return "one way at 1,000/s, 300 B (µs)", series, ["p50", "p99"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of a record; 0, or 2 when the file cannot be read."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/report.py", description="table and plot of a benchmark record"
    )
    parser.add_argument("file", type=Path, help="JSON file that run.py wrote")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw an SVG or PNG file")
    options = parser.parse_args(arguments)
    try:
        record = json.loads(options.file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"{options.file} is not a benchmark record: {error}")
    sys.stdout.write(markdown(record))
    if options.plot:
        plot(record, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
