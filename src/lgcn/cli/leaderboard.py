"""The leaderboard of a portfolio, as text."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from lgcn.cli.output import err, out
from lgcn.training.metric_names import metric_text
from lgcn.utils.durations import format_duration

SHOWN = 20  # rows


def print_member(entry: Any) -> None:
    """One line on standard error after each member of a portfolio."""
    if entry.error is not None:
        err.print(f"{entry.name}: failed: {escape(entry.error)}", soft_wrap=True)
        return
    err.print(
        f"{entry.name}: validation {entry.val_score:.4g}, {format_duration(entry.seconds)}",
        soft_wrap=True,
    )


def print_leaderboard(record: dict[str, Any]) -> None:
    """The members by validation score, with their times and weights in the ensemble.

    Args:
        record: The record of a portfolio.
    """
    rows = record["leaderboard"]
    used = sum(row["weight"] > 0 for row in rows)
    table = Table(title="Leaderboard", title_justify="left")
    table.add_column("member")
    for column in (f"validation {record['metric']}", "seconds", "weight"):
        table.add_column(escape(column), justify="right")
    shown = [row for place, row in enumerate(rows) if place < SHOWN or row["weight"] > 0]
    for row in shown:
        failed = row["error"] is not None
        table.add_row(
            escape(row["name"]),
            "failed" if failed else metric_text(record["metric"], row["val_score"]),
            f"{row['seconds']:.1f}",
            f"{row['weight']:.2f}" if row["weight"] > 0 else "",
        )
    out.print(table)
    more = len(rows) - len(shown)
    hidden = f" ({more} more in ensemble.json)" if more else ""
    model = f"averages {used} of them" if used > 1 else "is one of them"
    out.print(
        f"{len(rows)} members in {format_duration(record['seconds'])}{hidden}; the model {model}",
        soft_wrap=True,
    )


def print_choice(record: dict[str, Any]) -> None:
    """Which of the default settings was kept."""
    scores = record["labels_by_validation"]
    names = {"few": "few labels", "many": "many labels", "deep": "deep network"}
    texts = [f"{names[name]} {metric_text(record['metric'], scores[name])}" for name in scores]
    out.print(
        f"settings chosen by validation: {', '.join(texts)} (--set labels=few or many skips this)",
        soft_wrap=True,
    )
