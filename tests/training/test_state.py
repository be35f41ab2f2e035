"""Which epoch counts, by the honest and by the released rule."""

from collections.abc import Sequence

from lgcn.training import State


def recorded(scores: Sequence[tuple[float, float, float | None]]) -> State:
    """The state after epochs with these validation scores, validation losses and test scores."""
    state = State()
    for epoch, (val_score, val_loss, test_score) in enumerate(scores, start=1):
        state.epoch = epoch
        state.record(
            {
                "epoch": epoch,
                "val_score": val_score,
                "val_loss": val_loss,
                "test_score": test_score,
            }
        )
    return state


def test_the_honest_rule_takes_the_best_validation_score():
    state = recorded([(0.5, 1.0, 0.9), (0.7, 1.0, 0.6), (0.6, 0.1, 0.95)])
    assert (state.best_epoch, state.best_val_score) == (2, 0.7)


def test_ties_go_to_the_lower_validation_loss():
    assert recorded([(0.7, 1.0, 0.6), (0.7, 0.8, 0.5)]).best_epoch == 2
    assert recorded([(0.7, 1.0, 0.6), (0.7, 1.2, 0.9)]).best_epoch == 1
    assert recorded([(0.7, 1.0, 0.6), (0.7, 1.0, 0.9)]).best_epoch == 1


def test_the_released_rule_takes_the_highest_test_score_where_validation_got_no_worse():
    scores = [
        (0.5, 1.0, 0.80),  # first
        (0.4, 1.0, 0.99),  # validation got worse: not looked at
        (0.5, 1.5, 0.85),  # no worse
        (0.7, 1.0, 0.60),  # the honest rule's epoch
    ]
    state = recorded(scores)
    assert state.released_test_score == 0.85
    assert scores[state.best_epoch - 1][2] == 0.60


def test_no_test_nodes_no_test_score():
    assert recorded([(0.5, 1.0, None), (0.6, 1.0, None)]).released_test_score is None


def test_a_lower_score_is_better_if_the_metric_says_so():
    state = State()
    scores = [(2.0, 1.0, 3.0), (1.5, 9.0, 2.5), (1.5, 8.0, 4.0), (1.6, 0.1, 1.0)]
    kept = []
    for epoch, (val_score, val_loss, test_score) in enumerate(scores, start=1):
        entry = {"epoch": epoch, "val_score": val_score, "val_loss": val_loss}
        kept.append(state.record({**entry, "test_score": test_score}, greater_is_better=False))
    assert kept == [True, True, True, False]
    assert (state.best_epoch, state.best_val_score, state.best_val_loss) == (3, 1.5, 8.0)
    assert state.released_test_score == 2.5


def test_the_first_epoch_counts_however_bad_it_is():
    state = recorded([(-7.5, 1.0, -9.0)])
    assert (state.best_epoch, state.best_val_score) == (1, -7.5)
    assert state.released_test_score == -9.0
