"""A trained run as a web service: `lgcn serve`.

| file | what is in it |
|---|---|
| `served_run.py` | the run, its graph and its answers |
| `known_nodes.py`, `new_nodes.py`, `field.py` | nodes by id; nodes that the graph does not have; what they depend on |
| `worker.py` | the one thread that computes, and its bounded queue |
| `schemas.py`, `invalid.py` | what requests look like; what is said about others |
| `app.py`, `inference_protocol.py` | the routes |
| `guard.py`, `metrics.py` | checks before a route, headers, log; numbers for Prometheus |
| `report_page.py`, `pages/` | the page at `/`, the API page, the report |
| `server.py` | sockets, signals, uvicorn |
"""  # noqa: E501
