"""The Open Inference Protocol, version 2 (KServe), over JSON.

The one input is `nodes`, ids of nodes of the graph. The outputs are columns of the table of
predictions. Specification: https://github.com/kserve/open-inference-protocol
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.responses import Response

from lgcn import __version__
from lgcn.service.answers import SafeJson
from lgcn.service.problems import RequestError, shown
from lgcn.service.schemas import InferRequest, InferTensor, PredictRequest
from lgcn.service.served_run import ServedRun

if TYPE_CHECKING:
    from lgcn.service.app import Service

VERSION = "1"  # of the model: a run never changes
INPUT = "nodes"


def add_routes(app: FastAPI, service: Service) -> None:
    """Adds the routes of the protocol.

    Args:
        app: The application.
        service: The run and its worker.
    """
    served = service.served

    @app.get("/v2", tags=["Open Inference Protocol"], summary="The server")
    async def server() -> Response:
        return SafeJson({"name": "lgcn", "version": __version__, "extensions": []})

    @app.get("/v2/health/live", tags=["Open Inference Protocol"], summary="Whether it runs")
    async def live() -> Response:
        return SafeJson({"live": True})

    @app.get("/v2/health/ready", tags=["Open Inference Protocol"], summary="Whether it answers")
    async def ready() -> Response:
        return SafeJson({"ready": True})

    for version in ("", "/versions/{version}"):
        base = "/v2/models/{name}" + version
        shown_in_docs: dict[str, Any] = {
            "tags": ["Open Inference Protocol"],
            "include_in_schema": not version,
        }

        @app.get(base, summary="Inputs and outputs of the model", **shown_in_docs)
        async def model(name: str, version: str = VERSION) -> Response:
            _check_name(served, name, version)
            return SafeJson(metadata(served))

        @app.get(f"{base}/ready", summary="Whether the model answers", **shown_in_docs)
        async def model_ready(name: str, version: str = VERSION) -> Response:
            _check_name(served, name, version)
            return SafeJson({"name": served.name, "ready": True})

        @app.post(f"{base}/infer", summary="Predict nodes of the graph", **shown_in_docs)
        async def infer(name: str, request: InferRequest, version: str = VERSION) -> Response:
            _check_name(served, name, version)
            ids = _ids(request.inputs)
            wanted = _wanted(served, request)
            answer = await service.predict(PredictRequest(nodes=ids))
            outputs = [_output(name, served, answer.rows) for name in wanted]
            found = {"model_name": served.name, "model_version": VERSION, "outputs": outputs}
            return SafeJson(found | ({} if request.id is None else {"id": request.id}))


def metadata(served: ServedRun) -> dict[str, Any]:
    """The description of the model."""
    kind = "INT64" if served.known.integer else "BYTES"
    outputs = [
        {"name": name, "datatype": datatype, "shape": shape}
        for name, (datatype, shape) in _outputs(served).items()
    ]
    return {
        "name": served.name,
        "versions": [VERSION],
        "platform": "lgcn_pytorch",
        "inputs": [{"name": INPUT, "datatype": kind, "shape": [-1]}],
        "outputs": outputs,
    }


def _outputs(served: ServedRun) -> dict[str, tuple[str, list[int]]]:
    """Datatype and shape of each output."""
    if served.task == "regression":
        names = ["predicted"]
        if served.decision.interval is not None and served.decision.interval[1] is not None:
            names += ["lower", "upper"]
        return {name: ("FP64", [-1]) for name in names}
    return {
        "predicted": ("BYTES", [-1]),
        "confidence": ("FP32", [-1]),
        "probabilities": ("FP32", [-1, len(served.class_names)]),
    }


def _check_name(served: ServedRun, name: str, version: str) -> None:
    if name != served.name:
        raise RequestError(f"no model {shown(name)}; this service has {served.name!r}", status=404)
    if version != VERSION:
        raise RequestError(f"no version {shown(version)}; the model has {VERSION!r}", status=404)


def _ids(inputs: list[InferTensor]) -> list[Any]:
    """The ids of the nodes in the one input."""
    names = [tensor.name for tensor in inputs]
    if names != [INPUT]:
        raise RequestError(f"want one input, {INPUT!r}, got {shown(names)}", "inputs", 400)
    [tensor] = inputs
    if tensor.datatype not in ("BYTES", "INT64"):
        raise RequestError(
            f"want BYTES or INT64, got {shown(tensor.datatype)}", "inputs[0].datatype", 400
        )
    data = [one for part in tensor.data for one in (part if isinstance(part, list) else [part])]
    count = 1
    for size in tensor.shape:
        count *= size
    if not 1 <= len(tensor.shape) <= 2 or min(tensor.shape) < 0 or count != len(data):
        raise RequestError(
            f"the shape must be that of the {len(data)} ids in data, got {shown(tensor.shape)}",
            "inputs[0].shape",
            400,
        )
    if not data:
        raise RequestError("want at least one id", "inputs[0].data", 400)
    wanted: Any = str if tensor.datatype == "BYTES" else int
    for place, one in enumerate(data):
        if type(one) is not wanted or (wanted is int and not -(2**63) <= one < 2**63):
            raise RequestError(
                f"want {tensor.datatype}, got {shown(one)}", f"inputs[0].data[{place}]", 400
            )
        try:
            str(one).encode()
        except UnicodeEncodeError:
            raise RequestError(
                "text must be valid Unicode", f"inputs[0].data[{place}]", 400
            ) from None
    return data


def _wanted(served: ServedRun, request: InferRequest) -> list[str]:
    """The names of the outputs to answer with."""
    known = _outputs(served)
    if not request.outputs:
        return list(known)
    for place, output in enumerate(request.outputs):
        if output.name not in known:
            raise RequestError(
                f"no output {shown(output.name)}; known: {', '.join(known)}",
                f"outputs[{place}].name",
                400,
            )
    return [output.name for output in request.outputs]


def _output(name: str, served: ServedRun, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One output tensor, flat in row-major order."""
    datatype, shape = _outputs(served)[name]
    if name == "probabilities":
        data = [value for row in rows for value in row[name].values()]
    elif datatype == "BYTES":
        data = [str(row[name]) for row in rows]
    else:
        data = [row[name] for row in rows]
    return {"name": name, "datatype": datatype, "shape": [len(rows), *shape[1:]], "data": data}
