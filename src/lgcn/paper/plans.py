"""Which runs each table, the figure and the ablation need."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lgcn.errors import UsageError, did_you_mean
from lgcn.paper import printed as paper
from lgcn.paper.graph_plan import QUICK_FOLDS, QUICK_TRIALS, GraphPlan, graph_parts_plan, graph_plan
from lgcn.paper.jobs import GRAPH_SETS, GRAPHS, PUBLISHED
from lgcn.paper.plan import PROTEINS, Plan, Row
from lgcn.paper.systems import SYSTEMS

CITATIONS = ("cora", "citeseer", "pubmed")
BEST_SEEDS = 20
# --quick: of the other graphs, the ones with the fewest edges are enough to show that everything
# runs.
QUICK_GRAPHS = ("coauthor_cs", "PROTEINS")
# The presets of the LGCN, and their names in the tables.
PRESETS = {"paper": "text as written", "released": "released program", "default": "lgcn's defaults"}
# The paper's tables: 1000 steps on PPI, where these systems would train for hundreds of epochs of
# up to 90 steps. GAT has 20 steps per epoch.
PROTEIN_LIMITS: Mapping[str, Mapping[str, Any]] = {
    "lgcn": {"max_steps": 1000},
    "gat": {"max_epochs": 50},
}
K = (2, 4, 8, 16, 32)
# As wide as GCNII, and trained on whole graphs like the other systems of its table.
WIDE_SAGE: Mapping[str, Any] = {
    "training": "whole",
    "evaluate_on": "graph",
    "hidden_channels": 2048,
    "num_layers": 3,
    "lr": 0.001,
    "patience": 100,
}
# GraphSAGE has as many epochs as the LGCN. GCNII learns more slowly and has more. GAT was run with
# fewer, as its row says.
BEST_PROTEIN_LIMITS: Mapping[str, Mapping[str, Any]] = {
    "gat": {"max_epochs": 300},
    "sage-mean": {"max_epochs": 950},
    "gcnii": {"max_epochs": 1200},
}
DEEPWALK_PROGRAM: Mapping[str, Any] = {"walks_per_node": 10, "window": 5, "dimensions": 64}

# Table 5: one network, and two ways to select the sub-graph for training.
ONE_HOP: Mapping[str, Any] = {"max_hops": 1, "max_nodes": None, "resample": False}
ALGORITHM_1: Mapping[str, Any] = {"max_hops": None, "max_nodes": 2000}

# The released program with one option changed, to the value in the paper's text or to another one.
ABLATION_BASE = "released program"
ABLATION: dict[str, Mapping[str, Any]] = {
    ABLATION_BASE: {},
    "dropout rate 0.16, as printed": {"dropout": 0.16},
    "no dropout of edges": {"adj_dropout": 0.0},
    "dropout rate 0.999 of edges, as printed": {"adj_dropout": 0.999},
    "ranking: raw values": {"rank": "raw"},
    "ranking: neighbours without the node": {"self_loops": False},
    "zeros only fill up": {"zeros": "pad"},
    "no batch norm": {"batch_norm": "none"},
    "batch norm: running statistics": {"batch_norm": "running"},
    "Adam": {"optimizer": "adam"},
    "Algorithm 1 to 2000 nodes": ALGORITHM_1,
    "Algorithm 1, anew in each epoch": {**ALGORITHM_1, "resample": True},
    "classifier: simple sum": {"classifier": "sum"},
    "no L2 on biases": {"decay_biases": False},
    "scored on the whole graph": {"evaluate_on": "graph"},
    "1000 epochs at most": {"max_epochs": 1000},
}

# The paper's text, with more and more of it read differently, until it trains.
KEEP_RATES: Mapping[str, Any] = {"dropout": 0.84, "adj_dropout": 0.001}
TEXT: dict[str, Mapping[str, Any]] = {
    "text as written": {},
    "without dropout of edges": {"adj_dropout": 0.0},
    "printed dropout rates read as keep rates": KEEP_RATES,
    "the same, classifier: normalised sum": {**KEEP_RATES, "classifier": "normalized"},
    "the same, ranking: normalised values": {**KEEP_RATES, "rank": "normalized"},
    "the same, learning rate 0.01": {**KEEP_RATES, "lr": 0.01},
}


def make_plans(
    target: str,
    *,
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    seeds: int | None = None,
    preset: str | None = None,
    quick: bool = False,
    trials: int | None = None,
) -> list[Plan]:
    """The plans of a target, or of all.

    Args:
        target: One of :data:`TARGETS`, or ``"all"``.
        datasets, models: Only these. (default: all)
        seeds: Number of runs per row, with seeds from 0. (default: 10; 20 for ``"best"``, 3 on
            PPI and per fold of whole graphs)
        preset: Only this preset of the LGCN. (default: those of each table)
        quick: One run of a few epochs per row, to see that everything works. Of the graphs without
            a split, it takes one, unless ``datasets`` names others. (default: ``False``)
        trials: Settings tried per system and fold, on whole graphs. (default: 4)
    """
    check_names("target", [target], [*TARGETS, "all"])
    known_presets = [*PRESETS, *(["best"] if target in BEST else [])]
    check_names("preset", [preset] if preset is not None else [], known_presets)
    if seeds is not None and seeds < 1:
        raise UsageError(f"--seeds must be at least 1, got {seeds}")
    if trials is not None and target not in ("graphs", "all"):
        raise UsageError(f"--trials is for graphs: omit it for {target}")
    most = GraphPlan.trials
    if trials is not None and not 1 <= trials <= most:
        raise UsageError(f"--trials must be from 1 to {most}, got {trials}")
    start = {"ablation": "released", "text": "paper", **dict.fromkeys(BEST, "best")}.get(target)
    if start is not None and preset not in (None, start):
        raise UsageError(f"{target} starts from the preset {start!r}: omit --preset {preset}")
    plans = [TARGETS[name](preset) for name in ([target] if target != "all" else TARGETS)]
    check_names("data set", datasets, _distinct(d for plan in plans for d in plan.datasets), target)
    known = _distinct(row.system for plan in plans for row in plan.rows)
    check_names("model", models, known, target)
    chosen = []
    for plan in plans:
        rows = tuple(row for row in plan.rows if not models or row.system in models)
        wanted = datasets or plan.datasets
        if quick and not datasets:
            many = (*GRAPHS, *GRAPH_SETS)
            wanted = [d for d in wanted if d not in many or d in QUICK_GRAPHS]
        kept = tuple(d for d in plan.datasets if d in wanted)
        if rows and kept:
            number = seeds or plan.seeds
            plan = replace(plan, rows=rows, datasets=kept, seeds=number, quick=quick)
            if isinstance(plan, GraphPlan):
                most = QUICK_TRIALS if quick else plan.trials
                folds = QUICK_FOLDS if quick else plan.folds
                plan = replace(plan, trials=min(trials or most, plan.trials), folds=folds)
            chosen.append(plan)
    return chosen


def check_names(
    kind: str, given: Sequence[str], valid: Sequence[str], target: str | None = None
) -> None:
    """Raises UsageError for the first name that is not valid."""
    for name in given:
        if name not in valid:
            where = "there is no" if target in (None, "all") else f"{target} has no"
            raise UsageError(f"{where} {kind} {name!r}: {did_you_mean(name, valid)}")


def _distinct(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _plain(target: str, *names: str) -> list[Row]:
    """Rows of systems that have one preset."""
    numbers = {"gat": paper.GAT} | paper.SCORES[target]
    return [Row(SYSTEMS[name].title, name, {}, numbers.get(name, {})) for name in names]


def _lgcn(target: str, preset: str | None, *names: str) -> list[Row]:
    """One row per preset, or a row of the chosen preset."""
    presets = {preset: PRESETS[preset]} if preset is not None else PRESETS
    return [
        Row(
            f"{SYSTEMS[name].title} ({title})",
            name,
            {"preset": key},
            paper.SCORES[target].get(name, {}),
        )
        for key, title in presets.items()
        for name in names
    ]


def _table2(preset: str | None) -> Plan:
    rows = _plain("table2", "deepwalk")
    # The printed numbers are from a paper that does not name its settings; these come close.
    label = f"{SYSTEMS['deepwalk'].title} (its program's defaults)"
    rows += [Row(label, "deepwalk", DEEPWALK_PROGRAM, paper.SCORES["table2"]["deepwalk"])]
    rows += _plain("table2", "planetoid", "chebyshev", "gcn", "gat")
    rows += _lgcn("table2", preset, "lgcn")
    title = "Table 2: transductive learning, accuracy in %"
    return Plan("table2", title, CITATIONS, tuple(rows))


def _table3(preset: str | None) -> Plan:
    rows = _plain("table3", "sage-gcn", "sage-mean", "sage-pool", "sage-lstm")
    rows += _lgcn("table3", preset, "lgcn")
    rows += _plain("table3", "gat", "mlp", "zeros", "lookup")
    title = "Table 3: inductive learning, micro-F1"
    return Plan("table3", title, PROTEINS, tuple(rows), limits=PROTEIN_LIMITS)


def _table4(preset: str | None) -> Plan:
    rows = _lgcn("table4", preset, "lgcn-gcn", "lgcn")
    title = "Table 4: GCN layers and LGCLs in the same network, accuracy in %"
    return Plan("table4", title, CITATIONS, tuple(rows))


def _table5(preset: str | None) -> Plan:
    base = {"preset": preset or "default"}
    numbers = paper.SCORES["table5"]
    rows = (
        Row("GCN", "gcn", {}, numbers["gcn"]),
        Row("LGCN_whole", "lgcn-whole", base, numbers["lgcn-whole"]),
        Row("LGCN_sub, one hop", "lgcn", {**base, **ONE_HOP}, numbers["lgcn"]),
        Row("LGCN_sub, Algorithm 1", "lgcn", {**base, **ALGORITHM_1}),
    )
    title = f"Table 5: sub-graph and whole-graph training ({PRESETS[base['preset']]})"
    return Plan("table5", title, CITATIONS, rows)


def _figure5(preset: str | None) -> Plan:
    preset = preset or "default"
    printed = paper.SCORES["table2"]["lgcn"] | paper.SCORES["table3"]["lgcn"]
    rows = []
    for k in (*K, 64):
        own = {d: number for d, number in printed.items() if paper.FIGURE_K[d] == k}
        where = PROTEINS if k not in K else None
        rows.append(Row(f"k = {k}", "lgcn", {"preset": preset, "k": k}, own, where))
    title = f"Figure 5: LGCN_sub ({PRESETS[preset]}) over k"
    datasets = (*CITATIONS, *PROTEINS)
    return Plan("figure5", title, datasets, tuple(rows), limits=PROTEIN_LIMITS)


def _ablation(preset: str | None) -> Plan:
    rows = [
        Row(label, "lgcn", {"preset": "released", **changed}) for label, changed in ABLATION.items()
    ]
    title = "Ablation: the released program with one option changed, accuracy in %"
    return Plan("ablation", title, CITATIONS, tuple(rows))


def _text(preset: str | None) -> Plan:
    rows = [Row(label, "lgcn", {"preset": "paper", **changed}) for label, changed in TEXT.items()]
    title = "The paper's text, and what has to change for it to train, accuracy in %"
    return Plan("text", title, CITATIONS, tuple(rows))


BEST_ROW = "LGCN (best)"
# The network without LGCLs, with the settings of the LGCN or with its own.
WITHOUT = Row("the same without LGCLs", "lgcn", {"preset": "best", "num_layers": 0})
SEARCHED_WITHOUT = Row("without LGCLs, tuned separately", "lgcn", {"preset": "best-without"})


def _best(preset: str | None) -> Plan:
    rows = (*_best_rows(paper.SCORES["table2"]["lgcn"]), SEARCHED_WITHOUT)
    title = "The best preset, and what its LGCLs add, accuracy in %"
    return Plan("best", title, CITATIONS, rows, seeds=BEST_SEEDS)


def _best_rows(printed: Mapping[str, paper.Number]) -> tuple[Row, ...]:
    """The preset, and the preset without LGCLs or with GCN layers instead of them."""
    base = {"preset": "best"}
    return (
        Row(BEST_ROW, "lgcn", base, printed),
        WITHOUT,
        Row("the same with GCN layers for LGCLs", "lgcn-gcn", base),
    )


def _best_graphs(preset: str | None) -> Plan:
    baselines = [Row(SYSTEMS[name].title, name) for name in ("gcn", "gat", "sage-mean", "mlp")]
    title = "Other graphs, each system with the settings of its own search, accuracy in %"
    return Plan("best-graphs", title, GRAPHS, (*_best_rows({}), SEARCHED_WITHOUT, *baselines))


def _best_published(preset: str | None) -> Plan:
    rows = (
        Row(BEST_ROW, "lgcn", {"preset": "best"}),
        Row("the same with the mean for LGCLs", "lgcn", {"preset": "best", "aggregate": "mean"}),
        Row("with the mean, tuned separately", "lgcn", {"preset": "best-without"}),
    )
    title = "Graphs whose neighbours disagree, published splits, ROC AUC in %"
    return Plan("best-published", title, PUBLISHED, rows)


def _best_ppi(preset: str | None) -> Plan:
    rows = (
        *_best_rows(paper.SCORES["table3"]["lgcn"]),
        Row(f"GAT, {BEST_PROTEIN_LIMITS['gat']['max_epochs']} epochs", "gat"),
        Row(SYSTEMS["gcnii"].title, "gcnii"),
        Row("GraphSAGE-mean, wide", "sage-mean", WIDE_SAGE),
    )
    title = "Inductive learning with wide networks, micro-F1"
    return Plan("best-ppi", title, PROTEINS, rows, limits=BEST_PROTEIN_LIMITS)


TARGETS = {
    "table2": _table2,
    "table3": _table3,
    "table4": _table4,
    "table5": _table5,
    "figure5": _figure5,
    "ablation": _ablation,
    "text": _text,
    "best": _best,
    "best-graphs": _best_graphs,
    "best-published": _best_published,
    "best-ppi": _best_ppi,
    "graphs": graph_plan,
    "graph-parts": graph_parts_plan,
}
BEST = ("best", "best-graphs", "best-published", "best-ppi")
