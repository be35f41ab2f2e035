"""Two files as people write them: sellers of a marketplace, and what they share.

The files are invented. Fraudulent sellers come in rings that share bank accounts and devices.
Run it in an empty folder: ``python make_files.py`` writes sellers.csv and links.csv.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SELLERS, LABELLED, RINGS, RING = 2000, 1700, 15, 10
HONEST = ("candles", "vintage", "books", "garden", "tools", "bikes", "ceramics", "family", "since")
FRAUD = ("phones", "watches", "sneakers", "original", "sealed", "cheap", "today", "books", "tools")
HEADER = (
    *("seller", "number", "joined", "turnover", "returns"),
    *("rating", "country", "about", "payouts", "fraud"),
)


def german(value: float, digits: int) -> str:
    """1234.5 as 1.234,50."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def main(folder: Path) -> None:
    rng = np.random.default_rng(1)
    fraud = np.zeros(SELLERS, dtype=bool)
    rings = rng.permutation(SELLERS)[: RINGS * RING].reshape(RINGS, RING)
    fraud[rings.ravel()] = True
    known = np.zeros(SELLERS, dtype=bool)
    known[rng.permutation(SELLERS)[:LABELLED]] = True
    turnover = np.exp(rng.normal(7.5 + 0.4 * fraud, 1.2))
    returns = np.clip(rng.normal(4 + 2.5 * fraud, 2.5), 0, None)
    rating = np.clip(rng.normal(4.4 - 0.3 * fraud, 0.5), 1, 5)
    joined = np.datetime64("2019-01-01") + rng.integers(0, 1500 + 300 * fraud)
    numbers = 500_000 + np.cumsum(rng.integers(1, 9, SELLERS))
    rows = []
    for i in range(SELLERS):
        words = rng.choice(FRAUD if fraud[i] and rng.random() < 0.5 else HONEST, 5)
        rows.append([
            f"S{i:04}",
            numbers[i],
            joined[i].item().strftime("%d.%m.%Y"),
            "N/A" if rng.random() < 0.04 else f"{german(turnover[i], 2)} €",
            "-" if rng.random() < 0.03 else f"{german(returns[i], 1)} %",
            "neu" if rng.random() < 0.02 else german(rating[i], 1),
            rng.choice(["DE", "AT", "CH", "NL"], p=[0.6, 0.2, 0.1, 0.1]),
            " ".join(words),
            "blocked" if fraud[i] and known[i] else "open",  # written after the decision
            ("yes" if fraud[i] else "no") if known[i] else "",
        ])  # fmt: skip
    links = [(a, b) for a, b in rng.integers(0, SELLERS, (3000, 2)) if a != b]
    for ring in rings:
        links += [(a, b) for a in ring for b in ring if a < b and rng.random() < 0.35]
    shared = rng.choice(["bank account", "device", "address"], len(links))
    write(folder / "sellers.csv", HEADER, rows)
    ends = [[f"S{a:04}", f"S{b:04}", kind] for (a, b), kind in zip(links, shared, strict=True)]
    write(folder / "links.csv", ("seller", "other", "shared"), ends)


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
