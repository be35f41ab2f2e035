"""The files in examples/cluster: shells can read them, and Kubernetes finds its fields."""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from lgcn.cli.app import app

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"


@pytest.mark.parametrize("name", ["torchrun.sh", "slurm.sh"])
def test_a_shell_can_read_the_script(name: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    subprocess.run([bash, "-n", str(FOLDER / name)], check=True)


def test_the_flags_of_the_job_are_those_of_the_command() -> None:
    entry = shlex.split(yaml.safe_load((FOLDER / "rayjob.yaml").read_text())["spec"]["entrypoint"])
    assert entry[:3] == ["lgcn", "train", "--ray"]
    program: Any = typer.main.get_command(app)
    known = {flag for one in program.commands["train"].params for flag in one.opts}
    assert {word for word in entry if word.startswith("--")} <= known


def test_the_job_has_the_fields_of_a_rayjob() -> None:
    job = yaml.safe_load((FOLDER / "rayjob.yaml").read_text())
    assert job["apiVersion"] == "ray.io/v1"
    assert job["kind"] == "RayJob"
    cluster = job["spec"]["rayClusterSpec"]
    constraints = (FOLDER.parents[1] / "constraints.txt").read_text().split()
    assert f"ray=={cluster['rayVersion']}" in constraints
    [workers] = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    number = f"--workers {workers['minReplicas']}-{workers['maxReplicas']} "
    assert number in job["spec"]["entrypoint"]
    for group in (cluster["headGroupSpec"], workers):
        pod = group["template"]["spec"]
        [container] = pod["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        [volume], [mount] = pod["volumes"], container["volumeMounts"]
        assert volume["name"] == mount["name"]
        assert mount["mountPath"] in job["spec"]["entrypoint"]
        assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in container["env"]
