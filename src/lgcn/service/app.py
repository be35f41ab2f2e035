"""The routes of the service: predictions, explanations, model information, pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from lgcn import __version__
from lgcn.service import inference_protocol, pages
from lgcn.service.answers import SafeJson
from lgcn.service.explanations import explain
from lgcn.service.guard import Guard
from lgcn.service.information import model_information
from lgcn.service.invalid import invalid_request, refuse_unknown
from lgcn.service.metrics import Metrics
from lgcn.service.problems import RequestError
from lgcn.service.schemas import ExplainRequest, PredictRequest
from lgcn.service.served_run import Answer, ServedRun
from lgcn.service.worker import Worker

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"


class Service:
    """A run, its worker and its metrics.

    Args:
        served: The run.
    """

    def __init__(self, served: ServedRun) -> None:
        self.served = served
        self.metrics = Metrics(lambda: self.worker.length)
        self.worker = Worker(served, self.metrics.batch)
        self.information = model_information(served)

    async def predict(self, request: PredictRequest) -> Answer:
        """The predictions of a request, once its turn has come."""
        answer: Answer = await self.wait(self.worker.predict(request))
        return answer

    async def wait(self, future: Future[Any]) -> Any:
        """The result of the worker, if it comes in time."""
        try:
            async with asyncio.timeout(self.served.limits.timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RequestError(
                f"the answer took longer than {self.served.limits.timeout:g} seconds; try again, "
                "or ask for less",
                status=503,
                retry_after=1,
            ) from None
        except asyncio.CancelledError:
            if not future.cancelled():  # the client is gone
                raise
            raise RequestError("the service is stopping", status=503, retry_after=1) from None


def make_app(
    served: ServedRun, *, token: str | None = None, hosts: tuple[str, ...] | None = None
) -> Guard:
    """The service as an ASGI application.

    Args:
        served: The run.
        token: The bearer token that requests must have. (default: none is needed)
        hosts: See `lgcn.service.guard.Guard`. (default: any)
    """
    service = Service(served)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        yield
        await asyncio.to_thread(service.worker.stop)

    app = FastAPI(
        title=f"lgcn: {served.name}",
        version=__version__,
        description="Predictions of a trained graph network.",
        docs_url=None,
        redoc_url=None,
        default_response_class=SafeJson,
        lifespan=lifespan,
    )
    app.state.service = service
    _add_errors(app)
    _add_routes(app, service)
    inference_protocol.add_routes(app, service)
    guard = Guard(app, served.limits, service.metrics, token, hosts)
    pages.add_routes(app, service, guard)
    return guard


def _add_routes(app: FastAPI, service: Service) -> None:
    name = service.served.name

    @app.post("/predict", tags=["friendly"], summary="Predict known and new nodes")
    async def predict(request: PredictRequest) -> Response:
        """Known nodes come first in the answer, then the new ones."""
        return _predictions(name, await service.predict(request))

    @app.get("/predict/{node:path}", tags=["friendly"], summary="Predict a node of the graph")
    async def predict_one(node: str, request: Request) -> Response:
        """The prediction of a node by its id."""
        refuse_unknown(request)
        return _predictions(name, await service.predict(_checked(PredictRequest, nodes=[node])))

    @app.post("/explain", tags=["friendly"], summary="Explain the prediction of a node")
    async def explain_one(request: ExplainRequest) -> Response:
        """Which neighbours, edges and columns the prediction comes from."""
        work = service.worker.call(lambda: explain(service.served, request))
        return SafeJson(await service.wait(work))

    @app.get("/explain/{node:path}", tags=["friendly"], summary="Explain a node of the graph")
    async def explain_by_id(
        request: Request,
        node: str,
        target: str | None = None,
        against: str | None = None,
        counterfactual: bool = False,
        picture: bool = False,
    ) -> Response:
        """The explanation of a node by its id; the parameters are the fields of a body."""
        options = {
            "target": target,
            "against": against,
            "counterfactual": counterfactual,
            "picture": picture,
        }
        refuse_unknown(request, *options)
        asked = _checked(ExplainRequest, node=node, **options)
        work = service.worker.call(lambda: explain(service.served, asked))
        return SafeJson(await service.wait(work))

    @app.get("/model", tags=["friendly"], summary="Classes, columns, scores, settings")
    async def model() -> Response:
        """What the model predicts, from which columns, and how well."""
        return SafeJson(service.information)

    @app.get("/metrics", tags=["operation"], summary="Numbers for Prometheus")
    async def metrics() -> Response:
        """Requests, latency, batches, queue and errors."""
        return Response(service.metrics.text(), media_type=METRICS_TYPE)


def _predictions(name: str, answer: Answer) -> Response:
    content: dict[str, Any] = {"model": name, "predictions": answer.rows}
    return SafeJson(content | ({"notes": list(answer.notes)} if answer.notes else {}))


def _checked(schema: Any, **values: Any) -> Any:
    """A request from parts of an address, checked like a body."""
    from pydantic import ValidationError

    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise invalid_request(error.errors()) from None


def _add_errors(app: FastAPI) -> None:
    """Every error is JSON with a reason, and none shows code or paths."""

    def answer(request: Request, error: RequestError) -> Response:
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return SafeJson(error.content(request.url.path), error.status, headers)

    @app.exception_handler(RequestError)
    async def refused(request: Request, error: RequestError) -> Response:
        return answer(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, invalid_request(error.errors()))

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, error: HTTPException) -> Response:
        words = {
            400: "the body is not valid JSON, or nested too deeply",
            404: "no such address; /docs lists all",
            405: "this address takes another method; /docs lists all",
        }
        text = words.get(error.status_code, "the request cannot be answered")
        problem = RequestError(text, "body" if error.status_code == 400 else None)
        problem.status = error.status_code
        return answer(request, problem)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        text = "internal error; the log of the service has the details"
        return answer(request, RequestError(text, status=500))
