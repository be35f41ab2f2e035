"""The routes: what they answer, what they refuse, and with which words."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import lgcn
from lgcn import load_run
from lgcn.service.served_run import ServedRun

from .conftest import Client

Clients = Callable[..., Client]


def test_known_and_new_nodes_in_one_request(client: Client) -> None:
    body = {
        "nodes": ["p7"],
        "new_nodes": [{"id": "x", "columns": {"width": 0.5, "color": "red"}}],
        "edges": [{"source": "x", "target": "p3"}],
    }
    answer = client.post("/predict", body)
    assert answer.status_code == 200
    found = answer.json()
    assert found["model"] == "mine"
    assert [row["node"] for row in found["predictions"]] == ["p7", "x"]
    for row in found["predictions"]:
        assert sum(row["probabilities"].values()) == pytest.approx(1)
    assert found["predictions"][0]["split"] in ("train", "val", "test")
    assert client.get("/predict/p7").json()["predictions"] == found["predictions"][:1]


def test_a_regression_has_an_interval_and_several_labels_are_joined(client_of: Clients) -> None:
    [row] = client_of("regression").get("/predict/p7").json()["predictions"]
    assert row["lower"] < row["predicted"] < row["upper"]
    assert "confidence" not in row
    [row] = client_of("several labels").get("/predict/p7").json()["predictions"]
    assert set(row["probabilities"]) == {"one", "two"}
    marked = [name for name, chance in row["probabilities"].items() if chance > 0.5]
    assert row["predicted"] == ";".join(marked)


def test_explanations_are_those_of_the_run(client: Client, run_of: Callable[[str], Path]) -> None:
    [expected] = load_run(run_of("classes")).explain("p7")
    found = client.post("/explain", {"node": "p7"}).json()
    assert found["node"] == "p7"
    for key in ("predicted", "explained", "score", "baseline"):
        assert found[key] == pytest.approx(getattr(expected, key)), key
    assert found["by_column"] == json.loads(json.dumps(expected.to_dict()["by_column"]))
    assert client.get("/explain/p7").json() == found
    other = client.post("/explain", {"node": "p7", "target": "art", "against": "law"}).json()
    assert other["explained"] == "art"
    wrong = client.post("/explain", {"node": "p7", "target": "arts"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "target")
    assert "'art'" in wrong.json()["error"]
    unknown = client.get("/explain/nobody")
    assert (unknown.status_code, unknown.json()["field"]) == (404, "node[0]")


def test_parameters_of_an_address_are_those_of_a_body(client: Client) -> None:
    body = {"node": "p7", "target": "law", "against": "art", "counterfactual": True}
    query = "target=law&against=art&counterfactual=true"
    found = client.get(f"/explain/p7?{query}").json()
    assert found == client.post("/explain", body).json()
    assert (found["explained"], found["against"]) == ("law", "art")
    assert found["counterfactual"] is not None
    for path, field, reason in (
        ("/explain/p7?tagret=law", "tagret", "target"),
        ("/explain/p7?target=lawn", "target", "'law'"),
        ("/explain/p7?counterfactual=maybe", "counterfactual", "true or false, got 'maybe'"),
        ("/predict/p7?target=law", "target", "no such parameter"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["field"]) == (422, field)
        assert reason in answer.json()["error"]


def test_a_misspelled_field_is_named_before_the_missing_one(client: Client) -> None:
    answer = client.post("/explain", {"nodes": ["p7"]})
    assert answer.status_code == 422
    assert answer.json() == {"error": "no such field; 'node' is required", "field": "nodes"}


@pytest.mark.parametrize(
    ("cells", "same"),
    [({"size": "1.014"}, {"size": 1014}), ({"width": "1.014"}, {"width": 1.014})],
)
def test_cells_that_are_text_are_read_as_in_the_table(
    client: Client, cells: dict[str, str], same: dict[str, float]
) -> None:
    """The column `size` has decimal commas, `width` has points."""
    found = [
        client.post("/predict", {"new_nodes": [{"id": "x", "columns": one}]}).json()
        for one in (cells, same)
    ]
    assert found[0] == found[1]
    assert found[0]["predictions"]


def test_what_cannot_be_explained_is_refused_in_words(client_of: Clients) -> None:
    answer = client_of("trees").post("/explain", {"node": "p7"})
    assert answer.status_code == 422
    assert "trees" in answer.json()["error"].lower()


def test_too_large_neighbourhoods_are_not_explained(client_of: Clients) -> None:
    answer = client_of(max_neighbours=10).post("/explain", {"node": "p7"})
    assert answer.status_code == 413
    assert "10 nodes" in answer.json()["error"]


def test_the_model_information(client: Client, tmp_path: Path) -> None:
    found = client.get("/model").json()
    assert found["name"] == "mine"
    assert found["version"] == lgcn.__version__
    assert found["classes"] == ["art", "law"]
    kinds = {column["name"]: column["kind"] for column in found["new_nodes"]["columns"]}
    assert kinds == {
        "size": "number",
        "width": "number",
        "color": "category",
        "says": kinds["says"],
        "since": "date",
        "tags": "list",
    }
    assert found["graph"]["nodes"] == 60
    assert found["graph"]["examples"] == ["p0", "p1", "p2", "p3", "p4"]
    assert found["settings"]["model"]["k"] == 3
    assert 0 <= found["scores"]["val"] <= 1
    assert "/tmp" not in json.dumps(found)
    assert ".csv" not in json.dumps(found)


def test_the_open_inference_protocol(client: Client) -> None:
    assert client.get("/v2").json()["name"] == "lgcn"
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2/models/mine/ready").json() == {"name": "mine", "ready": True}
    described = client.get("/v2/models/mine").json()
    assert described["inputs"] == [{"name": "nodes", "datatype": "BYTES", "shape": [-1]}]
    assert [output["name"] for output in described["outputs"]] == [
        *("predicted", "confidence", "probabilities")
    ]
    asked = {"name": "nodes", "shape": [2], "datatype": "BYTES", "data": ["p3", "p7"]}
    answer = client.post("/v2/models/mine/infer", {"id": "a1", "inputs": [asked]}).json()
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("mine", "1", "a1")
    friendly = client.post("/predict", {"nodes": ["p3", "p7"]}).json()["predictions"]
    outputs = {output["name"]: output for output in answer["outputs"]}
    assert outputs["predicted"]["data"] == [row["predicted"] for row in friendly]
    assert outputs["confidence"]["data"] == [row["confidence"] for row in friendly]
    assert outputs["probabilities"]["shape"] == [2, 2]
    flat = [value for row in friendly for value in row["probabilities"].values()]
    assert outputs["probabilities"]["data"] == flat
    nested = {**asked, "shape": [2, 1], "data": [["p3"], ["p7"]]}
    one = {"inputs": [nested], "outputs": [{"name": "confidence"}]}
    [only] = client.post("/v2/models/mine/versions/1/infer", one).json()["outputs"]
    assert only == outputs["confidence"]


def test_the_protocol_of_a_regression_and_of_numbers(client_of: Clients) -> None:
    described = client_of("regression").get("/v2/models/mine").json()
    assert [(o["name"], o["datatype"]) for o in described["outputs"]] == [
        ("predicted", "FP64"),
        ("lower", "FP64"),
        ("upper", "FP64"),
    ]
    client = client_of("directed with weights")
    assert client.get("/v2/models/mine").json()["inputs"][0]["datatype"] == "INT64"
    asked = {"name": "nodes", "shape": [1], "datatype": "INT64", "data": [1007]}
    answer = client.post("/v2/models/mine/infer", {"inputs": [asked]})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("tensor", "status", "reason"),
    [
        ({"name": "node"}, 400, "'nodes'"),
        ({"datatype": "FP32"}, 400, "BYTES or INT64"),
        ({"shape": [3]}, 400, "shape"),
        ({"shape": [-2, -1]}, 400, "shape"),
        ({"data": [1, 2]}, 400, "BYTES"),
        ({"data": ["p1", "nobody"]}, 404, "'nobody'"),
        ({"data": ["p1", "\ud800"]}, 400, "Unicode"),
        ({"data": [], "shape": [0]}, 400, "at least one"),
        ({"datatype": "INT64", "data": [1, 2**70]}, 400, "INT64"),
    ],
)
def test_mistakes_in_the_protocol_have_its_error_object(
    client: Client, tensor: dict[str, Any], status: int, reason: str
) -> None:
    asked = {"name": "nodes", "shape": [2], "datatype": "BYTES", "data": ["p3", "p7"], **tensor}
    body = json.dumps({"inputs": [asked]})
    headers = {"Content-Type": "application/json"}
    answer = client.request("POST", "/v2/models/mine/infer", content=body, headers=headers)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert reason in answer.json()["error"]


@pytest.mark.parametrize(
    "path", ["/v2/models/other", "/v2/models/mine/versions/2", "/v2/nothing", "/nothing"]
)
def test_unknown_addresses_are_json_too(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("content", "status", "field", "reason"),
    [
        ('{"nodes": ["p1"', 400, "body", "JSON"),
        ('{"nodes": ["p1"]} more', 400, "body", "JSON"),
        ("[" * 100_000, 400, "body", "nested"),
        ('{"nodes": [' + "9" * 5000 + "]}", 400, "body", "JSON"),
        ('{"nodes": ["\xff"]}', 400, "body", "JSON"),
        ("", 422, "body", "JSON object"),
        ("null", 422, "body", ""),
        ("[]", 422, "body", ""),
        ('{"node": ["p1"]}', 422, "node", "no such field"),
        ('{"nodes": "p1"}', 422, "nodes", "want a list, got 'p1'"),
        ('{"nodes": null}', 422, "nodes", "want a list, got null"),
        ('{"new_nodes": ["x"]}', 422, "new_nodes[0]", "want a JSON object, got 'x'"),
        ('{"nodes": [1.5]}', 422, "nodes[0]", "whole number"),
        ('{"nodes": [true]}', 422, "nodes[0]", "bool"),
        ('{"nodes": [null]}', 422, "nodes[0]", "NoneType"),
        ('{"nodes": [""]}', 422, "nodes[0]", "characters"),
        ('{"nodes": [' + "9" * 30 + "]}", 422, "nodes[0]", "64 bits"),
        ('{"nodes": ["\\ud800"]}', 422, "nodes[0]", "Unicode"),
        ('{"nodes": ["p1", "p 1"]}', 404, "nodes[1]", "'p1'"),
        ('{"nodes": []}', 422, "nodes", "at least one"),
        ('{"new_nodes": [{}]}', 422, "new_nodes[0].id", "required"),
        ('{"new_nodes": [{"id": "x", "columns": {"width": NaN}}]}', 422, "width", "finite"),
        ('{"new_nodes": [{"id": "x", "columns": {"width": -Infinity}}]}', 422, "width", "finite"),
        ('{"new_nodes": [{"id": "x", "columns": {"width": 1e999}}]}', 422, "width", "finite"),
        ('{"new_nodes": [{"id": "x", "columns": {"width": {}}}]}', 422, "width", "object"),
        ('{"new_nodes": [{"id": "x", "columns": {"tags": [1, "a"]}}]}', 422, "tags", "one kind"),
        ('{"new_nodes": [{"id": "x"}], "edges": [{"source": "x"}]}', 422, "target", "required"),
    ],
)
def test_wrong_bodies_get_the_field_and_the_reason(
    client: Client, content: str, status: int, field: str, reason: str
) -> None:
    headers = {"Content-Type": "application/json"}
    body = content.encode("latin-1" if "\xff" in content else "utf-8")
    answer = client.request("POST", "/predict", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert field in answer.json()["field"]
    assert reason in answer.json()["error"]


def test_a_body_must_be_json_and_short(client_of: Clients) -> None:
    client = client_of(max_body=200, max_nodes=3, max_edges=2)
    answer = client.request("POST", "/predict", content='{"nodes": ["p1"]}')
    assert (answer.status_code, answer.json()["field"]) == (415, "Content-Type")
    read = []

    async def endless() -> Any:
        while True:
            read.append(1)
            yield b" " * 100

    headers = {"Content-Type": "application/json"}
    answer = client.request("POST", "/predict", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert "200 bytes" in answer.json()["error"]
    assert len(read) < 10  # it was not read to its end, which it does not have
    large = client.post("/predict", {"nodes": ["p1" * 200]})
    assert large.status_code == 413
    many = client.post("/predict", {"nodes": ["p1"] * 4})
    assert (many.status_code, many.json()["field"]) == (413, "nodes")
    edges = [{"source": "x", "target": "p1"}] * 3
    many = client.post("/predict", {"new_nodes": [{"id": "x"}], "edges": edges})
    assert (many.status_code, many.json()["field"]) == (413, "edges")


def test_a_length_that_is_too_large_is_refused_unread(client: Client) -> None:
    """The body never comes; the answer does."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"99999999999")]
    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers}
    client.runner.run(client.app(scope, receive, send))
    assert sent[0]["status"] == 413


def test_a_body_that_does_not_come_is_given_up(client_of: Clients) -> None:
    import asyncio

    client = client_of(timeout=0.05)

    async def slow() -> Any:
        yield b"{"
        await asyncio.sleep(30)

    headers = {"Content-Type": "application/json"}
    answer = client.request("POST", "/predict", content=slow(), headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (408, "body")


def test_a_token_is_needed_where_there_is_one(client_of: Clients) -> None:
    client = client_of(token="s3cret")
    for path in ("/predict/p1", "/model", "/metrics", "/v2/models/mine", "/report", "/explain/p1"):
        answer = client.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "s3cret" not in answer.text
    for path in ("/", "/docs", "/openapi.json", "/assets/page.js", "/v2/health/ready"):
        assert client.get(path).status_code == 200, path
    for wrong in (
        "Bearer s3cre",
        "Bearer s3cret2",
        "Basic s3cret",
        "s3cret",
        "Bearer",
        "Bearer \xe9",
    ):
        headers = {"Authorization": wrong.encode("latin-1")}
        assert client.request("GET", "/model", headers=headers).status_code == 401, wrong
    right = {"Authorization": "Bearer s3cret"}
    assert client.get("/model", headers=right).status_code == 200
    answer = client.post("/session", {}, headers=right)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "s3cret" not in cookie
    # The cookie opens the report and nothing else.
    value = {"Cookie": cookie.partition(";")[0]}
    assert client.get("/report", headers=value).status_code != 401
    assert client.get("/model", headers=value).status_code == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("localhost:8000", 200), ("evil.example", 421), ("", 421)],
)
def test_pages_that_resolve_to_this_machine_are_refused(
    client: Client, host: str, status: int
) -> None:
    assert client.get("/model", headers={"Host": host}).status_code == status


def test_every_answer_has_the_headers_that_protect_a_browser(client: Client) -> None:
    for path in ("/", "/model", "/nothing", "/predict/nobody"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_the_pages_load_nothing_from_elsewhere(client: Client) -> None:
    for path in ("/", "/docs"):
        text = client.get(path).text
        assert "http://" not in text
        assert "https://" not in text
        for name in re.findall(r'(?:src|href)="(/assets/[^"]+)"', text):
            asset = client.get(name)
            assert asset.status_code == 200
            assert asset.headers["content-type"].split(";")[0] in (
                *("text/css", "text/javascript", "image/svg+xml"),
            )
    assert client.get("/assets/..%2fapp.py").status_code == 404


def test_the_api_is_described(client: Client) -> None:
    described = client.get("/openapi.json").json()
    assert {"/predict", "/explain", "/model", "/v2/models/{name}/infer"} <= set(described["paths"])
    fields = described["components"]["schemas"]["PredictRequest"]["properties"]
    assert set(fields) == {"nodes", "new_nodes", "edges"}


def test_the_metrics(client: Client) -> None:
    client.get("/predict/p1")
    client.get("/predict/nobody")
    client.get("/some/other/address")
    text = client.get("/metrics").text
    route = 'method="GET",route="/predict/{node:path}"'
    assert f'lgcn_requests_total{{{route},status="200"}} 1.0' in text
    assert f'lgcn_requests_total{{{route},status="404"}} 1.0' in text
    assert 'route="other",status="404"' in text
    assert f"lgcn_request_seconds_count{{{route}}} 2.0" in text
    assert "lgcn_batch_size_count 2.0" in text
    assert "lgcn_queue_length 0.0" in text
    assert 'lgcn_errors_total{status="404"} 2.0' in text


def test_a_failure_shows_nothing_of_the_inside(
    client: Client, served_run: Callable[..., ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise KeyError("/secret/path")

    monkeypatch.setattr(served_run(), "predict", fail)
    answer = client.get("/predict/p1")
    assert answer.status_code == 500
    assert list(answer.json()) == ["error"]
    assert "secret" not in answer.text
    assert "KeyError" not in answer.text
    monkeypatch.undo()
    assert client.get("/predict/p1").status_code == 200  # the worker goes on


def test_a_request_cannot_write_lines_into_the_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    log = logging.getLogger("lgcn.service")
    log.propagate = True
    with caplog.at_level(logging.INFO, logger="lgcn.service"):
        client.get("/predict/p1%0Afake%20line%1b[31m")
    assert "\n" not in caplog.messages[-1]
    assert "\x1b" not in caplog.messages[-1]
    assert " 404 " in caplog.messages[-1]


def test_web_sockets_and_other_methods_are_refused(client: Client) -> None:
    assert client.request("DELETE", "/predict").status_code == 405
    assert client.request("BREW", "/predict").status_code == 405
    assert isinstance(client.request("OPTIONS", "/predict"), httpx.Response)
