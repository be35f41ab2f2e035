"""Save a run as an MLflow model, load it again and predict. Needs mlflow or mlflow-skinny.

python examples/mlflow_pyfunc.py

MLflow stores this file and the run folder, and no pickle. For a run on your own tables, add them to
the artifacts: {"run": folder, "edges": "edges.csv", "nodes": "nodes.csv"}.
"""

import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

import lgcn


class GraphModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A run folder as an MLflow model: ids of nodes in, their predictions out."""

    def load_context(self, context: Any) -> None:
        run = lgcn.load_run(context.artifacts["run"])
        tables = {
            key: context.artifacts[key] for key in ("edges", "nodes") if key in context.artifacts
        }
        self.table = run.predictions(**tables).to_pandas().set_index("node", drop=False)

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        unknown = [one for one in model_input["node"] if one not in self.table.index]
        if unknown:
            raise ValueError(f"no node has the id {unknown[0]!r}")
        return self.table.loc[model_input["node"]].reset_index(drop=True)


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    settings = lgcn.Settings.create(dataset="digits", seed=0, max_epochs=100)
    result = lgcn.train(lgcn.load_dataset("digits"), settings, out=folder / "run")
    print(f"validation {result.record['val_score']:.3f}")

    mlflow.pyfunc.save_model(
        folder / "model",
        python_model=str(Path(__file__).resolve()),
        artifacts={"run": str(folder / "run")},
        input_example=pd.DataFrame({"node": [0, 1]}),
        pip_requirements=[f"lgcn=={lgcn.__version__}"],
    )
    model = mlflow.pyfunc.load_model(str(folder / "model"))
    found = model.predict(pd.DataFrame({"node": [3, 1, 4]}))
    print(found[["node", "predicted", "confidence"]])
    expected = lgcn.load_run(folder / "run").predictions().to_pandas().loc[[3, 1, 4]]
    assert found["predicted"].tolist() == expected["predicted"].tolist()


if __name__ == "__main__":
    main()
else:  # MLflow runs this file when it saves and loads the model
    mlflow.models.set_model(GraphModel())
