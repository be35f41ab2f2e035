"""The columns of each table, and the notes below it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lgcn.paper.graph_plan import LIMITS, GraphPlan
from lgcn.paper.plan import PROTEINS, Plan
from lgcn.paper.plans import BEST, BEST_PROTEIN_LIMITS
from lgcn.paper.systems import QUICK_EPOCHS, SYSTEMS
from lgcn.paper.timing import EPOCHS
from lgcn.paper.timing import QUICK_EPOCHS as QUICK_TIMED

DIFFERENCE = "Difference: to the first row under the honest rule, ± standard error."
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
# The numbers of a row on a data set, by name. Accuracies are in percent, micro-F1 is a fraction.
Entry = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and the text of an entry in it."""

    title: str
    text: Callable[[Entry], str]
    bold: bool = False


def columns(target: str, entries: Sequence[Entry]) -> tuple[Column, ...]:
    """The columns that a table has per data set."""
    printed = Column("paper", _printed)
    honest = Column("honest", honest_score, bold=True)
    released = Column("released rule", lambda e: _score(e, "released"))
    if target == "table3":
        cells = Column("label cells", lambda e: _score(e, "label_accuracy"))
        return printed, honest, released, cells
    if target == "graph-parts":
        return honest, Column("difference", _shift)
    if target == "graphs":
        published = Column("published", printed.text)
        return published, honest, Column("difference", _shift), Column("runs", _runs)
    if target in ("best-graphs", "best-published"):
        return honest, Column("difference", _shift)
    if target == "ablation":
        return honest, Column("difference", _shift), released
    if target in BEST:
        return printed, honest, Column("difference", _shift), released
    if target == "text":
        return honest, released
    if target != "table5":
        return printed, honest, released
    found = [
        Column("nodes, paper", lambda e: _number(e["nodes_paper"], 0)),
        Column("nodes", lambda e: _number(e["nodes"], 0), bold=True),
        Column("accuracy, paper", printed.text),
        Column("honest", honest_score, bold=True),
        released,
        Column("seconds, paper", lambda e: _time(e, "paper")),
    ]
    for device, title in DEVICES.items():
        if any(entry[f"train_seconds_{device}"] is not None for entry in entries):
            found.append(Column(f"seconds, {title}", lambda e, d=device: _time(e, d)))  # type: ignore[misc]
    return tuple(found)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _printed(entry: Entry) -> str:
    foreign = entry["system"] == "gat" and entry["paper"] is not None
    return _score(entry, "paper") + (" †" if foreign else "")


def _digits(entry: Entry) -> int:
    return 3 if entry["metric"] == "micro-F1" else 1


def _score(entry: Entry, key: str) -> str:
    digits = _digits(entry)
    std = entry.get(f"{key}_std")
    spread = "" if std is None else f" ± {std:.{digits}f}"
    return _number(entry[key], digits) + spread


def honest_score(entry: Entry) -> str:
    """Mean, standard deviation and number of runs."""
    if entry["honest"] is None:
        return "-"
    done, wanted = entry["seeds"], entry["seeds_wanted"]
    return f"{_score(entry, 'honest')} ({done if done == wanted else f'{done} of {wanted}'})"


def _runs(entry: Entry) -> str:
    done, wanted = entry["runs"], entry["runs_wanted"]
    return str(done) if done == wanted else f"{done} of {wanted}"


def _shift(entry: Entry) -> str:
    if entry["difference"] is None:
        return "-"
    digits, error = _digits(entry), entry["difference_error"]
    spread = "" if error is None else f" ± {error:.{digits}f}"
    return f"{entry['difference']:+.{digits}f}" + spread


def _time(entry: Entry, where: str) -> str:
    seconds, ratio = entry[f"train_seconds_{where}"], entry[f"times_gcn_{where}"]
    if seconds is None:
        return "-"
    text = f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"
    return text + (
        "" if ratio is None else f" ({ratio:.2g}x)" if ratio < 10 else f" ({ratio:.0f}x)"
    )


def notes(plan: Plan, entries: Sequence[Entry]) -> list[str]:
    """The notes below a table."""
    if isinstance(plan, GraphPlan):
        return _notes_on_graphs(plan)
    texts = [
        "Mean ± standard deviation (number of seeds). Honest: the test score at the epoch with "
        "the best validation score. Released rule: the highest test score of all epochs at which "
        "the validation score did not fall, as the authors' program reports it; this rule uses "
        "the test set."
    ]
    if plan.quick:
        texts.insert(
            0,
            f"Made by --quick: one seed, at most {QUICK_EPOCHS} epochs, narrow networks on PPI. "
            "This shows that everything runs; the scores mean nothing.",
        )
    if "ppi-rederived" in plan.datasets:
        texts.append(
            "ppi-rederived has the graphs and features of PPI, and labels that were derived again "
            "from gene annotations. Its scores are not PPI scores; the paper's numbers beside "
            "them are for PPI."
        )
    if any(row.system == "gat" and row.printed for row in plan.rows):
        texts.append("† From the GAT paper; the LGCN paper has no row for GAT.")
    if any(row.system == "deepwalk" for row in plan.rows) and "pubmed" in plan.datasets:
        texts.append(
            "DeepWalk with the settings of its paper: 20 walks per node on Pubmed instead of 80, "
            "to save time."
        )
    if plan.limits and set(plan.datasets) & set(PROTEINS) and not plan.quick:
        steps = "On the PPI graphs, LGCN_sub and GAT are trained for 1000 steps."
        texts.append(_most_epochs() if plan.target == "best-ppi" else steps)
    if plan.target == "table3":
        texts.append(
            "Label cells: the share of all (node, label) pairs that are predicted correctly, which "
            "is what the released scoring function computes."
        )
    if plan.target == "table5":
        epochs = QUICK_TIMED if plan.quick else EPOCHS
        texts.append(
            f"Nodes: in one training iteration. Seconds: {epochs} epochs of training without "
            "evaluation; in brackets, relative to GCN. The paper measured 100 epochs on a TITAN Xp."
        )
    if plan.target == "figure5":
        texts.append(
            "The paper's figure prints no numbers; those at the paper's k are from Tables 2 and 3."
        )
    if plan.target == "ablation":
        texts.append(
            f"{DIFFERENCE} The second row has the runs of the first, reported by the released rule."
        )
    if plan.target in BEST:
        texts.append(DIFFERENCE)
    if plan.target == "best-graphs":
        texts.append(
            "20 training nodes per class and 500 validation nodes; (half): 50 / 25 / 25 % of the "
            "nodes. Each seed draws its own split, so differences are between runs with the same "
            "seed."
        )
    if plan.target == "best-published":
        texts.append(
            "The published splits in their order, one run each. Differences are between runs on "
            "the same split."
        )
    if any(entry["seeds"] < entry["seeds_wanted"] for entry in entries):
        texts.append("Where runs are missing, the score is the mean of the seeds that were run.")
    return texts


def _most_epochs() -> str:
    """The limits of the LGCN and the other systems on the PPI graphs."""
    from lgcn.training import Settings

    own = Settings.create(dataset="ppi", preset="best").optimisation.max_epochs
    others = (
        f"{SYSTEMS[name].title} {limit['max_epochs']}"
        for name, limit in BEST_PROTEIN_LIMITS.items()
    )
    return f"Maximum number of epochs: {', '.join([f'LGCN {own}', *others])}."


def _notes_on_graphs(plan: GraphPlan) -> list[str]:
    times = "once" if plan.seeds_per_fold == 1 else f"{plan.seeds_per_fold} times"
    chosen = (
        ""
        if plan.trials == 1
        else f"In each fold, {plan.trials} settings are tried, and the best by validation score "
        f"is trained {times}. "
    )
    texts = [
        "Mean ± standard deviation over folds (number of folds). The folds are public: training, "
        f"validation and test graphs. {chosen}The epoch of each run is that with the best "
        "validation score. Test graphs choose nothing.",
        "Difference: to the first row, over the folds that both have, ± standard error.",
        f"Networks are trained for at most {LIMITS['max_epochs']} epochs, and stop after "
        f"{LIMITS['patience']} without a better validation score.",
    ]
    if plan.target == "graphs":
        texts.append("The structure-blind baseline has the limits of its preset.")
        texts.append(
            "Published: the fair comparison of Errica et al. (2020), on the same test folds. It "
            "holds out other validation graphs for the three final runs, and tries more settings. "
            "ENZYMES is without node attributes, which has no published row."
        )
    if plan.quick:
        texts.insert(
            0,
            f"Made by --quick: one fold and run, and {QUICK_EPOCHS} epochs. This shows that "
            "everything runs; the scores mean nothing.",
        )
    return texts
