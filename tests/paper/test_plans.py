"""The plans: every row of the paper, real settings, the options, and messages for wrong names."""

from types import SimpleNamespace
from typing import Any

import pytest

from lgcn.errors import UsageError
from lgcn.paper import printed as paper
from lgcn.paper.jobs import PUBLISHED, Job, command, run_job
from lgcn.paper.plan import Plan
from lgcn.paper.plans import ABLATION, BEST, PRESETS, TARGETS, make_plans
from lgcn.paper.systems import SYSTEMS
from lgcn.training import Settings
from lgcn.training.presets import preset_names


def plan(target: str, **options: Any) -> Plan:
    [found] = make_plans(target, **options)
    return found


def chosen(job: Job) -> Any:
    """The settings of a run, by flat name."""
    options = {} if job.fold is None else job.dataset_options
    settings = Settings.create(
        dataset=job.loaded, dataset_options=options, seed=job.seed, **job.settings
    )
    return SimpleNamespace(**settings.flat())


def changes(job: Job, preset: str) -> dict[str, Any]:
    """What a run has otherwise than a preset."""
    base = Settings.create(dataset=job.dataset, preset=preset).flat()
    own = vars(chosen(job))
    return {key: value for key, value in own.items() if value != base[key]}


@pytest.mark.parametrize("target", ["table2", "table3", "table4", "table5"])
def test_every_row_of_the_paper_is_there(target: str) -> None:
    found = {row.system for row in plan(target).rows}
    assert found >= paper.SCORES[target].keys()
    for row in plan(target).rows:
        if row.printed and row.system != "gat":
            assert row.printed == paper.SCORES[target][row.system]


def test_systems_beside_the_paper_s() -> None:
    assert {row.system for row in plan("table2").rows} >= {"gat"}
    assert {row.system for row in plan("table3").rows} >= {"gat", "mlp", "zeros", "lookup"}


def test_all_presets_exist_and_settings_are_valid() -> None:
    assert set(preset_names()) >= PRESETS.keys()
    for one in make_plans("all", seeds=1):
        for job in one.all_jobs():
            if SYSTEMS[job.system].function is None:
                model = chosen(job).model
                name = job.system if job.fold is not None else job.system.partition("-")[0]
                if job.dataset in PUBLISHED:  # the LGCN's second body
                    name = "residual"
                assert model == name.replace("-", "_")


def test_each_preset_is_a_row() -> None:
    for target in ("table2", "table3"):
        rows = [row for row in plan(target).rows if row.system == "lgcn"]
        assert [row.settings["preset"] for row in rows] == ["paper", "released", "default"]
        assert [row.label for row in rows] == [f"LGCN_sub ({PRESETS[r]})" for r in PRESETS]
    rows = plan("table4").rows
    assert sorted((row.system, row.settings["preset"]) for row in rows) == sorted(
        (system, preset) for system in ("lgcn", "lgcn-gcn") for preset in PRESETS
    )


def test_table_4_changes_the_layer_alone() -> None:
    for row in plan("table4").rows:
        [job] = plan("table4", seeds=1).jobs(row, "citeseer")
        expected = {"layer": "gcn"} if row.system == "lgcn-gcn" else {}
        assert changes(job, row.settings["preset"]) == expected


@pytest.mark.parametrize("preset", [None, "released"])
def test_table_5_changes_the_training_alone(preset: str | None) -> None:
    one = plan("table5", preset=preset, seeds=1)
    jobs = {row.label: one.jobs(row, "cora")[0] for row in one.rows}
    base = preset or "default"
    assert changes(jobs["LGCN_whole"], base) == {"training": "whole"}
    hop, whole = (chosen(jobs[f"LGCN_sub, {how}"]) for how in ("one hop", "Algorithm 1"))
    assert (hop.max_hops, hop.max_nodes, hop.resample) == (1, None, False)
    assert (whole.max_hops, whole.max_nodes) == (None, 2000)
    for job in jobs.values():
        if job.system != "gcn":
            sampled = {"training", "max_hops", "max_nodes", "resample"}
            assert changes(job, base).keys() <= sampled


def test_deepwalk_by_its_paper_and_by_its_program() -> None:
    one = plan("table2", seeds=1)
    own, program = (row for row in one.rows if row.system == "deepwalk")
    assert own.printed == program.printed
    assert [job.settings for job in one.jobs(own, "cora")] == [{}]
    for dataset in ("cora", "pubmed"):
        [job] = one.jobs(program, dataset)
        assert job.settings == {"walks_per_node": 10, "window": 5, "dimensions": 64}


def test_the_best_preset_stands_beside_itself_without_lgcls() -> None:
    one = plan("best")
    whole, without, gcn, searched = one.rows
    assert len(one.jobs(whole, "cora")) == 20
    for row, expected in ((whole, {}), (without, {"num_layers": 0}), (gcn, {"layer": "gcn"})):
        job = one.jobs(row, "cora")[0]
        assert chosen(job).preset == "best"
        assert changes(job, "best") == expected
    assert chosen(one.jobs(searched, "cora")[0]).num_layers == 0
    assert len(plan("best", seeds=2).jobs(whole, "cora")) == 2


@pytest.mark.parametrize("target", ["best-graphs", "best-ppi"])
def test_baselines_stand_beside_the_best_preset_and_its_ablations(target: str) -> None:
    one = plan(target)
    dataset = one.datasets[-1]
    expected = [{}, {"num_layers": 0}, {"layer": "gcn"}]
    for row, changed in zip(one.rows, expected, strict=False):
        job = one.jobs(row, dataset)[0]
        assert changes(job, "best") == changed
    rest = [chosen(one.jobs(row, dataset)[0]) for row in one.rows[3:]]
    baselines = [run for run in rest if run.model != "lgcn"]
    models = {"best-graphs": ["gcn", "gat", "sage", "mlp"], "best-ppi": ["gat", "gcnii", "sage"]}
    assert [baseline.model for baseline in baselines] == models[target]
    searched = [(run.preset, run.num_layers) for run in rest if run.model == "lgcn"]
    assert searched == ([("best-without", 0)] if target == "best-graphs" else [])
    # On whole graphs, to the end.
    assert {baseline.training for baseline in baselines} == {"whole"}
    assert {baseline.max_steps for baseline in baselines} == {None}


def test_all_systems_have_as_many_epochs_on_the_other_graphs() -> None:
    one = plan("best-graphs")
    for dataset in one.datasets:
        runs = [chosen(one.jobs(row, dataset)[0]) for row in one.rows]
        assert {(run.max_epochs, run.patience) for run in runs} == {(300, 100)}


def test_a_system_with_fewer_epochs_than_the_lgcn_on_proteins_says_so() -> None:
    one = plan("best-ppi")
    for dataset in one.datasets:
        first, *others = ((row.label, chosen(one.jobs(row, dataset)[0])) for row in one.rows)
        lgcn = first[1]
        for label, other in others:
            said = f"{other.max_epochs} epochs" in label
            assert said == (other.max_epochs < lgcn.max_epochs)
            assert other.patience >= lgcn.patience


def test_the_seed_draws_the_split_of_graphs_without_one() -> None:
    one = plan("best-graphs")
    jobs = one.jobs(one.rows[0], "wordnet31-half")
    assert [job.dataset_options for job in jobs] == [{"split_seed": n} for n in range(10)]
    assert plan("best").jobs(plan("best").rows[0], "cora")[3].dataset_options == {}


def test_each_run_on_the_published_splits_takes_the_next_one() -> None:
    one = plan("best-published")
    own, mean, tuned = one.rows
    jobs = one.jobs(own, "tolokers")
    assert [job.dataset_options for job in jobs] == [{"split": n} for n in range(10)]
    assert "--set dataset_options.split=3" in command(jobs[3])
    assert chosen(jobs[0]).metric == "roc_auc"
    assert changes(one.jobs(mean, "tolokers")[0], "best") == {"aggregate": "mean"}
    assert chosen(one.jobs(tuned, "tolokers")[0]).aggregate == "mean"


def test_runs_on_ppi_end_after_a_thousand_steps() -> None:
    one = plan("table3", seeds=1)
    steps_an_epoch = {"gat": 20}  # a graph each
    limited = {}
    for row in one.on("ppi-rederived"):
        if row.system in ("lgcn", "gat"):
            [job] = one.jobs(row, "ppi-rederived")
            epochs, steps = chosen(job).max_epochs, chosen(job).max_steps
            limited[row.label] = steps or epochs * steps_an_epoch[row.system]
    assert set(limited.values()) == {1000}
    assert len(limited) == 4
    for row in plan("table2", seeds=1).on("cora"):
        [job] = plan("table2", seeds=1).jobs(row, "cora")
        assert "max_steps" not in job.settings


def test_figure_5_changes_k_alone() -> None:
    one = plan("figure5", seeds=1)
    for dataset in ("cora", "citeseer", "pubmed", "ppi-rederived"):
        sizes = []
        for row in one.on(dataset):
            [job] = one.jobs(row, dataset)
            sizes.append(chosen(job).k)
            limits = {"max_steps"} if dataset == "ppi-rederived" else set()
            assert changes(job, "default").keys() <= {"k"} | limits
        assert sizes == [2, 4, 8, 16, 32] + ([64] if dataset == "ppi-rederived" else [])


def test_the_ablation_changes_one_thing_at_a_time() -> None:
    one = plan("ablation", seeds=1)
    found = {}
    for row in one.rows:
        [job] = one.jobs(row, "cora")
        found[row.label] = changes(job, "released")
        assert found[row.label] == ABLATION[row.label]
    together = {"max_hops", "max_nodes", "resample"}  # what Algorithm 1 is made of
    assert all(len(changed) <= 1 or changed.keys() <= together for changed in found.values())
    assert len({str(changed) for changed in found.values()}) == len(found)
    options = {key for changed in found.values() for key in changed}
    assert options >= {
        *("dropout", "adj_dropout", "rank", "self_loops", "zeros", "batch_norm", "optimizer"),
        *("max_hops", "resample", "classifier", "decay_biases", "evaluate_on", "max_epochs"),
    }


def test_the_text_is_read_otherwise_step_by_step() -> None:
    one = plan("text", seeds=1)
    found = []
    for row in one.rows:
        [job] = one.jobs(row, "pubmed")
        found.append(changes(job, "paper"))
    keep_rates = {"dropout": 0.84, "adj_dropout": 0.001}
    assert found[:3] == [{}, {"adj_dropout": 0.0}, keep_rates]
    for changed in found[3:]:
        assert len(changed) == 3
        assert changed.items() > keep_rates.items()


def test_seeds() -> None:
    def seeds(one: Plan, system: str, dataset: str) -> list[int]:
        row = next(row for row in one.rows if row.system == system)
        return [job.seed for job in one.jobs(row, dataset)]

    assert seeds(plan("table2"), "gcn", "cora") == list(range(10))
    assert seeds(plan("table3"), "gat", "ppi") == [0, 1, 2]
    assert seeds(plan("table3"), "zeros", "ppi") == [0]
    assert seeds(plan("table3", seeds=5), "gat", "ppi") == list(range(5))
    assert seeds(plan("table2", seeds=2), "gcn", "cora") == [0, 1]
    assert seeds(plan("table2", quick=True), "gcn", "cora") == [0]


def test_quick_runs_are_short_and_never_mistaken_for_others() -> None:
    quick = [job for one in make_plans("all", quick=True) for job in one.all_jobs()]
    full = {job.id for one in make_plans("all") for job in one.all_jobs()}
    for job in quick:
        assert job.id not in full or not SYSTEMS[job.system].random
        if SYSTEMS[job.system].function is None:
            assert chosen(job).max_epochs <= 3
            assert "ppi" not in job.dataset or chosen(job).max_steps == 2
        elif SYSTEMS[job.system].random:
            assert job.settings["max_epochs"] <= 2


def test_all_has_every_target_once() -> None:
    assert [one.target for one in make_plans("all")] == list(TARGETS)


def test_choosing_data_sets_models_and_preset() -> None:
    one = plan("table2", datasets=["pubmed"], models=["lgcn", "gcn"], preset="paper")
    assert one.datasets == ("pubmed",)
    assert [row.label for row in one.rows] == ["GCN", "LGCN_sub (text as written)"]
    # Of all, those that have something left.
    with_gcn = [target for target in BEST if target != "best-published"]
    assert [p.target for p in make_plans("all", models=["lgcn-gcn"])] == ["table4", *with_gcn]
    on_ppi = ["table3", "figure5", "best-ppi"]
    assert [p.target for p in make_plans("all", datasets=["ppi"])] == on_ppi
    assert plan("figure5", preset="released").rows[0].settings["preset"] == "released"
    assert [p.target for p in make_plans("all", preset="paper")] == list(TARGETS)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("tabel2", {}, ["'tabel2'", "did you mean 'table2'"]),
        ("zzz", {}, ["'zzz'", "table2", "figure5", "ablation", "all"]),
        ("table2", {"models": ["gcm"]}, ["'gcm'", "did you mean 'gcn'"]),
        ("table2", {"models": ["mlp"]}, ["table2 has no model 'mlp'", "planetoid"]),
        ("table2", {"datasets": ["Coro"]}, ["'Coro'", "did you mean 'cora'"]),
        ("table2", {"datasets": ["ppi"]}, ["table2 has no data set 'ppi'", "citeseer"]),
        ("all", {"datasets": ["digits"]}, ["'digits'", "ppi-rederived"]),
        ("all", {"preset": "release"}, ["'release'", "did you mean 'released'"]),
        ("table2", {"preset": "gcn"}, ["'gcn'", "default"]),
        ("table2", {"seeds": 0}, ["--seeds", "at least 1", "0"]),
        ("ablation", {"preset": "paper"}, ["released", "paper"]),
        ("text", {"preset": "released"}, ["'paper'", "released"]),
    ],
)
def test_wrong_names_are_answered_with_valid_ones(
    target: str, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(UsageError) as error:
        make_plans(target, **options)
    for word in words:
        assert word in str(error.value)


@pytest.mark.usefixtures("data_root")
@pytest.mark.parametrize(("dataset", "hop"), [("cora", 644), ("citeseer", 442), ("pubmed", 354)])
def test_nodes_of_table_5(dataset: str, hop: int) -> None:
    """One hop from the training nodes gives the paper's numbers exactly."""
    one = plan("table5", quick=True)
    nodes = {
        row.label: run_job(job)["nodes_per_batch"]
        for row in one.rows
        if row.system == "lgcn"
        for job in one.jobs(row, dataset)
    }
    assert nodes == {"LGCN_sub, one hop": [hop], "LGCN_sub, Algorithm 1": [2000]}
    assert paper.NODES["lgcn"][dataset].mean == hop
