"""`torch.compile`, `torch.export` and ONNX with PyG's edge_index."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim
from torch.nn import Module

from lgcn import LGCN, LGConv
from lgcn.nn.residual import ResidualLGCN

SHAPES = {"x": {0: Dim("nodes")}, "edge_index": {1: Dim("edges")}}

MODELS: dict[str, Any] = {
    "LGConv": lambda: LGConv(6, 4, k=3),
    "LGConv, all": lambda: LGConv(6, 4, k=3, rank="normalized", self_loops=True, mean=True),
    "LGConv, zeros": lambda: LGConv(6, 4, k=3, zeros="compete", self_loops=True, cnn="single"),
    "LGCN": lambda: LGCN(6, 3, k=3, activation="relu"),
    "diffusion": lambda: LGCN(6, 3, k=3, classifier="diffusion", hops=2, cnn="shared"),
    "residual": lambda: ResidualLGCN(6, 3, num_layers=2, norm="layer"),
    "depthwise": lambda: ResidualLGCN(6, 3, num_layers=2, norm="layer", cnn="depthwise"),
    "max": lambda: ResidualLGCN(6, 3, num_layers=1, aggregate="max"),
    "attention": lambda: ResidualLGCN(6, 3, num_layers=1, aggregate="attention"),
}


@pytest.fixture(autouse=True)
def _compile_anew() -> None:
    """Programs that other tests compiled count towards a limit per function."""
    torch._dynamo.reset()


def edges(nodes: int, count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features and edges with duplicates, self-loops and nodes without neighbours."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 6, generator=generator)
    return x, torch.randint(0, nodes - 2, (2, count), generator=generator)


@pytest.mark.parametrize("name", MODELS)
def test_compiles_without_a_break_from_an_edge_index(name: str) -> None:
    model, (x, edge_index) = MODELS[name]().eval(), edges(20, 60)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    results = []
    for call in (model, compiled):
        model.zero_grad()
        own = x.clone().requires_grad_()
        out = call(own, edge_index)
        out.square().sum().backward()
        results.append([out, own.grad, *(p.grad for p in model.parameters())])
    for eager, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, eager)


def test_compiles_with_weights_and_with_pairs() -> None:
    x, edge_index = edges(20, 60)
    weight = torch.rand(60, requires_grad=True)
    conv = LGConv(6, 4, k=3, rank="normalized", self_loops=True)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    results = [call(x, edge_index, weight) for call in (conv, compiled)]
    torch.testing.assert_close(results[1], results[0])
    grads = [torch.autograd.grad(out.square().sum(), weight)[0] for out in results]
    torch.testing.assert_close(grads[1], grads[0])
    pair, conv = (x, x[:18] * 2), LGConv((6, 6), 4, k=3)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(pair, edge_index), conv(pair, edge_index))


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_program_takes_graphs_of_other_sizes(name: str) -> None:
    model = MODELS[name]().eval()
    program = torch.export.export(model, edges(20, 60), dynamic_shapes=SHAPES).module()
    for other in (edges(33, 101, 1), edges(7, 3, 2), edges(500, 4000, 3)):
        torch.testing.assert_close(program(*other), model(*other))


def test_a_traced_program_refuses_edges_that_are_no_nodes() -> None:
    x, edge_index = edges(20, 60)
    conv = LGConv(6, 4, k=3).eval()
    program = torch.export.export(conv, (x, edge_index), dynamic_shapes=SHAPES).module()
    with pytest.raises(ValueError, match=r"number of rows of x \(20\), got col.max\(\) = 20"):
        program(x, torch.tensor([[20, 1, 2], [0, 1, 2]]))


def to_onnx(model: Module, args: tuple[Tensor, Tensor], path: Path) -> Any:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            model, args, dynamo=True, dynamic_shapes=SHAPES, input_names=["x", "edge_index"]
        )
    assert program is not None
    program.save(path)
    return runtime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    "name",
    [
        *("LGConv, all", "LGConv, zeros", "LGCN"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("LGConv", "diffusion", "residual", "attention")
        ),
    ],
)
def test_onnx_runtime_gives_the_same_for_graphs_of_other_sizes(name: str, tmp_path: Path) -> None:
    model = MODELS[name]().eval()
    session = to_onnx(model, edges(20, 60), tmp_path / "model.onnx")
    for x, edge_index in (edges(33, 101, 1), edges(7, 3, 2), edges(500, 4000, 3), edges(9, 0)):
        inputs = {"x": x.numpy(), "edge_index": edge_index.numpy()}
        (out,) = session.run(None, inputs)
        assert (torch.from_numpy(out) - model(x, edge_index)).abs().max() <= 1e-5


def test_what_cannot_be_exported_is_refused_in_words(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    x, edge_index = edges(20, 60)

    def export(model: Module, *args: Any, onnx: bool = False) -> None:
        if onnx:
            torch.onnx.export(model, args, dynamo=True)
        else:
            torch.export.export(model, args)

    with pytest.raises(Exception, match="Call `forward` with a dummy batch"):  # torch's words
        export(LGConv(-1, 4), x, edge_index)
    with pytest.raises(Exception, match=r"adj_dropout \(0.5\) .* exported: call eval"):
        export(LGConv(6, 4, adj_dropout=0.5), x, edge_index)
    with pytest.raises(Exception, match=r"must be \(source features, target features\)"):
        export(LGConv(6, 4).eval(), (x, None), edge_index)
    with pytest.raises(Exception, match=r"model.eval\(\) before the export"):
        export(LGConv(6, 4, dropout=0.5), x, edge_index, onnx=True)
    with pytest.raises(Exception, match="index of a selection"):
        export(LGConv(6, 4, return_selection=True).eval(), x, edge_index, onnx=True)
    with pytest.raises(Exception, match=r"x must be dense .* x.to_dense\(\)"):
        export(LGCN(6, 4).eval(), x.to_sparse_csr(), edge_index)
