"""Many requests at once: batches, a bounded queue, and time limits."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lgcn.service.problems import RequestError
from lgcn.service.schemas import PredictRequest
from lgcn.service.served_run import ServedRun
from lgcn.service.worker import Worker

from .conftest import Client

ServedRuns = Callable[..., ServedRun]


@pytest.fixture
def held(served_run: ServedRuns, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Holds the model back until an event is set."""

    def hold(**limits: Any) -> tuple[ServedRun, threading.Event]:
        served, go = served_run("classes", **limits), threading.Event()
        predict = served.predict

        def waits(requests: Any) -> Any:
            go.wait(10)
            return predict(requests)

        monkeypatch.setattr(served, "predict", waits)
        return served, go

    return hold


def test_fifty_requests_at_once_get_the_answers_that_they_get_alone(client: Client) -> None:
    bodies = []
    for i in range(50):
        new = [{"id": "x", "columns": {"width": i / 10, "color": "red"}}]
        edges = [{"source": "x", "target": f"p{i}"}, {"source": f"p{(7 * i) % 60}", "target": "x"}]
        bodies.append({"nodes": [f"p{i}"]} if i % 3 else {"new_nodes": new, "edges": edges})
    alone = [client.post("/predict", body).json()["predictions"][0] for body in bodies]
    before = client.app.metrics.text().decode()
    together = [answer.json()["predictions"][0] for answer in client.together(bodies)]
    for one, other in zip(together, alone, strict=True):
        assert one["node"] == other["node"]
        assert one["confidence"] == pytest.approx(other["confidence"], abs=1e-5)
    after = client.app.metrics.text().decode()
    # Fewer batches than requests: several were computed together.
    batches = [
        float(text.split("lgcn_batch_size_count ")[1].split()[0]) for text in (before, after)
    ]
    assert batches[0] == 50
    assert batches[1] - batches[0] < 50


def test_requests_that_wait_are_one_batch(held: Any) -> None:
    served, go = held(max_batch=8)
    sizes: list[int] = []
    worker = Worker(served, sizes.append)
    worker.start()
    first = worker.predict(PredictRequest(nodes=["p0"]))
    while worker.length:
        time.sleep(0.001)
    others = [worker.predict(PredictRequest(nodes=[f"p{i}"])) for i in range(1, 13)]
    go.set()
    assert [f.result(10).rows[0]["node"] for f in [first, *others]] == [f"p{i}" for i in range(13)]
    assert sizes == [1, 8, 4]
    worker.stop()


def test_a_wrong_request_does_not_disturb_its_batch(held: Any) -> None:
    served, go = held()
    worker = Worker(served)
    worker.start()
    futures = [worker.predict(PredictRequest(nodes=[node])) for node in ("p1", "nobody", "p2")]
    go.set()
    assert futures[0].result(10).rows[0]["node"] == "p1"
    with pytest.raises(RequestError, match="nobody"):
        futures[1].result(10)
    assert futures[2].result(10).rows[0]["node"] == "p2"
    worker.stop()


def test_other_work_waits_for_its_turn(held: Any) -> None:
    served, go = held()
    order: list[str] = []
    worker = Worker(served, lambda size: order.append(f"batch of {size}"))
    worker.start()
    first = worker.predict(PredictRequest(nodes=["p1"]))
    while worker.length:
        time.sleep(0.001)
    more = [worker.predict(PredictRequest(nodes=["p2"])) for _ in range(2)]
    work = worker.call(lambda: order.append("work"))
    last = worker.predict(PredictRequest(nodes=["p3"]))
    go.set()
    for future in (first, *more, work, last):
        future.result(10)
    assert order == ["batch of 1", "batch of 2", "batch of 1", "work", "batch of 1"]
    worker.stop()


def test_a_full_queue_is_answered_with_429_and_recovers(
    held: Any, client_of: Callable[..., Client]
) -> None:
    _, go = held(queue=3, max_batch=1)
    client = client_of(queue=3, max_batch=1)
    threading.Timer(0.3, go.set).start()
    answers = client.together([{"nodes": ["p1"]}] * 12)
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 429}
    assert 3 <= codes.count(200) <= 4  # one is computed, three wait
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert "too many requests" in refused.json()["error"]
    assert client.post("/predict", {"nodes": ["p1"]}).status_code == 200


def test_what_takes_too_long_is_given_up_and_makes_room(
    held: Any, client_of: Callable[..., Client]
) -> None:
    limits = {"timeout": 0.2, "queue": 3, "max_batch": 1}
    _, go = held(**limits)
    client = client_of(**limits)
    answers = client.together([{"nodes": ["p1"]}] * 3)
    assert [answer.status_code for answer in answers] == [503] * 3
    assert answers[0].headers["retry-after"] == "1"
    assert "0.2 seconds" in answers[0].json()["error"]
    # Those that waited are forgotten: new ones fit into the queue.
    answers = client.together([{"nodes": ["p1"]}] * 3)
    assert [answer.status_code for answer in answers] == [503] * 3
    go.set()
    assert client.post("/predict", {"nodes": ["p1"]}).status_code == 200


def test_the_service_answers_while_the_model_computes(
    held: Any, client_of: Callable[..., Client]
) -> None:
    import asyncio

    _, go = held(timeout=9)
    client = client_of(timeout=9)

    async def both() -> tuple[bool, int]:
        waiting = asyncio.create_task(client.http.get("/predict/p1"))
        await asyncio.sleep(0.05)
        health = await client.http.get("/v2/health/live")
        done = waiting.done()
        go.set()
        await waiting
        return done, health.status_code

    assert client.runner.run(both()) == (False, 200)


def test_a_worker_that_stops_answers_nobody(held: Any) -> None:
    served, go = held()
    worker = Worker(served)
    worker.start()
    worker.predict(PredictRequest(nodes=["p1"]))
    while worker.length:
        time.sleep(0.001)
    waiting = worker.predict(PredictRequest(nodes=["p2"]))
    threading.Timer(0.1, go.set).start()
    worker.stop()
    assert waiting.cancelled()
    with pytest.raises(RequestError, match="stopping"):
        worker.predict(PredictRequest(nodes=["p1"]))


def test_too_little_memory_is_an_answer(held: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served, go = held()
    go.set()

    def fail(_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(served, "predict", fail)
    worker = Worker(served)
    worker.start()
    future = worker.predict(PredictRequest(nodes=["p1"]))
    with pytest.raises(RequestError, match="memory") as error:
        future.result(10)
    assert error.value.status == 503
    worker.stop()
