"""The learning rate and the number of views over a training."""

import pytest
import torch

from lgcn.errors import UsageError
from lgcn.training import Settings, train
from lgcn.training.groups import OptimisationSettings
from lgcn.training.schedule import learning_rate, set_learning_rate, views_of

from .graphs import digest, settings, small_graph


def rates(schedule: str, epochs: int, max_steps: int | None = None, steps: int = 1) -> list[float]:
    """The learning rate of each epoch, with so many steps per epoch."""
    chosen = OptimisationSettings(
        lr=0.1, lr_schedule=schedule, max_epochs=epochs, max_steps=max_steps
    )
    return [learning_rate(chosen, epoch, steps * epoch) for epoch in range(epochs)]


def test_a_constant_rate_stays() -> None:
    assert rates("constant", 7) == [0.1] * 7


def test_a_cosine_falls_from_the_rate_to_zero() -> None:
    found = rates("cosine", 40)
    assert found[0] == 0.1
    assert found == sorted(found, reverse=True)
    assert found[20] == pytest.approx(0.05)
    assert 0 < found[-1] < 0.001


def test_one_cycle_rises_in_the_first_fifth_and_falls_to_zero() -> None:
    found = rates("one_cycle", 50)
    assert found[0] == pytest.approx(0.01)
    assert found[:11] == sorted(found[:11])
    assert found[10] == max(found) == pytest.approx(0.1)
    assert found[10:] == sorted(found[10:], reverse=True)
    assert 0 < found[-1] < 0.001


def test_a_limit_of_steps_ends_the_schedule_as_well() -> None:
    assert rates("cosine", 40, max_steps=20, steps=2)[:10] == pytest.approx(
        rates("cosine", 10), abs=1e-12
    )


def test_rates_that_a_cuda_graph_reads_are_changed_in_place() -> None:
    rate = torch.tensor(0.5)
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": [p]} for p in parameters], lr=0.5)
    optimizer.param_groups[0]["lr"] = rate
    set_learning_rate(optimizer, 0.25)
    assert rate == 0.25
    assert optimizer.param_groups[1]["lr"] == 0.25


@pytest.mark.parametrize("schedule", ["cosine", "one_cycle"])
@pytest.mark.parametrize("optimizer", ["adam", "nadam"])
def test_the_schedule_changes_the_weights(schedule: str, optimizer: str) -> None:
    def trained(name: str) -> str:
        return digest(train(small_graph(), settings(lr_schedule=name, optimizer=optimizer)).model)

    assert trained(schedule) != trained("constant")


def test_at_the_end_of_a_schedule_little_changes() -> None:
    graph = small_graph()
    seen: list[float] = []
    train(
        graph,
        settings(lr_schedule="cosine", max_epochs=30, dropout=0.0, adj_dropout=0.0),
        on_epoch=lambda state: seen.append(state.history[-1]["train_loss"]),
    )
    assert abs(seen[-1] - seen[-2]) < 0.01 * abs(seen[1] - seen[0])


def test_steps_have_one_view_until_the_epoch_of_the_setting() -> None:
    chosen = OptimisationSettings(views=3, views_from=5)
    assert [views_of(chosen, epoch) for epoch in (1, 4, 5, 6)] == [1, 1, 3, 3]
    assert views_of(OptimisationSettings(views=3), 1) == 3


def test_one_view_at_first_is_a_training_without_agreement() -> None:
    several = {"views": 2, "agreement": 1.0, "max_epochs": 4}

    def losses(**given: object) -> list[float]:
        seen: list[float] = []
        config = settings(**given)
        train(small_graph(), config, on_epoch=lambda s: seen.append(s.history[-1]["train_loss"]))
        return seen

    late = losses(**several, views_from=3)
    assert late[:2] == losses(max_epochs=4)[:2]
    assert late[2:] != losses(max_epochs=4)[2:]
    assert late != losses(**several)
    assert losses(**several, views_from=1) == losses(**several)


@pytest.mark.parametrize(
    ("name", "value"),
    [("lr_schedule", "linear"), ("views_from", 0), ("views_from", 1.5), ("early_stop", "never")],
)
def test_wrong_values_are_named(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"{name} .*{value}"):
        Settings.create(**{name: value})
