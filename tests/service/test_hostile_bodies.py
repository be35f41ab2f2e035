"""Bodies that nobody would write by mistake: always an answer with 4xx and JSON, never 500."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgcn.service.app import make_app
from lgcn.service.served_run import ServedRun

from .conftest import Client

IDS = st.one_of(
    st.sampled_from(["p1", "p2", "x", "y", ""]),
    st.text(max_size=4),
    st.integers(),
    st.none(),
    st.booleans(),
    st.floats(),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.just(10**400), st.just(-0.0))
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=6),
    st.sampled_from(["red", "1,5", "2020-01-05", "-", "NaN", "x;y"]),
    st.lists(st.one_of(st.text(max_size=3), NUMBERS, st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
NAMES = st.one_of(
    st.sampled_from(["size", "width", "color", "says", "since", "tags", "kind", "id"]),
    st.text(max_size=4),
)
NODES = st.fixed_dictionaries(
    {"id": IDS},
    optional={
        "columns": st.dictionaries(NAMES, CELLS, max_size=4),
        "features": st.lists(NUMBERS, max_size=3),
        "more": st.none(),
    },
)
EDGES = st.fixed_dictionaries(
    {"source": IDS, "target": IDS}, optional={"weight": NUMBERS, "more": st.none()}
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "nodes": st.lists(IDS, max_size=3),
        "new_nodes": st.lists(NODES, max_size=3),
        "edges": st.lists(EDGES, max_size=3),
    },
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)
TENSORS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["nodes", "x"]),
        "shape": st.lists(st.integers(-3, 3), max_size=3),
        "datatype": st.sampled_from(["BYTES", "INT64", "FP32"]),
        "data": st.lists(st.one_of(IDS, st.lists(IDS, max_size=2), JSON), max_size=3),
    }
)
SLOW = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def hostile(served_run: Callable[..., ServedRun]) -> Iterator[Client]:
    client = Client(make_app(served_run(), hosts=("localhost",)))
    yield client
    client.close()


def check(client: Client, path: str, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.request("POST", path, content=content, headers=headers)
    found = json.loads(answer.text, parse_constant=pytest.fail)
    if answer.status_code == 200:
        assert "predictions" in found or "outputs" in found or "score" in found
        return
    assert 400 <= answer.status_code < 500, (answer.status_code, content, answer.text)
    assert isinstance(found["error"], str)
    assert found["error"]
    assert "Traceback" not in found["error"]
    assert "/src/" not in found["error"]


def written(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


@SLOW
@given(REQUESTS)
def test_predictions(hostile: Client, body: Any) -> None:
    check(hostile, "/predict", written(body))


@SLOW
@given(st.one_of(JSON.map(written), st.binary(max_size=40)))
def test_any_json_and_any_bytes(hostile: Client, content: bytes) -> None:
    for path in ("/predict", "/explain", "/v2/models/mine/infer"):
        check(hostile, path, content)


@SLOW
@given(st.fixed_dictionaries({"node": IDS}, optional={"target": IDS, "picture": CELLS}))
def test_explanations(hostile: Client, body: Any) -> None:
    check(hostile, "/explain", written(body))


@SLOW
@given(st.lists(TENSORS, max_size=2), st.one_of(st.none(), st.text(max_size=3)))
def test_the_protocol(hostile: Client, inputs: Any, name: Any) -> None:
    body = {"inputs": inputs, "id": name}
    check(hostile, "/v2/models/mine/infer", written(body))
