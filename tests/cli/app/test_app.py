"""The program as a whole: its help, its version, and what it imports."""

import re
import subprocess
import sys

import lgcn


def test_help_and_version_load_no_torch():
    code = (
        "import sys\n"
        "from lgcn.__main__ import main\n"
        "for option in ('--help', '--version'):\n"
        "    sys.argv = ['lgcn', option]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'numba', 'torch_geometric'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "lgcn 0." in done.stdout


def test_the_help_lists_commands_by_what_people_do(lgcn_):
    text = lgcn_("--help").out
    commands = re.findall(r"^│ (\w+) ", text, flags=re.MULTILINE)
    assert commands == [
        *("train", "predict", "evaluate", "report", "compare", "explain", "embed", "serve"),
        *("data", "import", "generate", "partition"),
        *("settings", "warmup"),
        "reproduce",
    ]
    panels = re.findall(r"^╭─ ([\w ]+) ─", text, flags=re.MULTILINE)
    assert panels == [
        "Options",
        "Train and use a model",
        "Data",
        "Settings and machine",
        "The paper",
    ]


def test_every_option_has_a_help(lgcn_):
    """In one short phrase."""
    import typer

    from lgcn.__main__ import command_line

    group = typer.main.get_command(command_line().app)
    commands = dict(group.commands)  # type: ignore[attr-defined]
    commands |= {f"data {name}": c for name, c in commands.pop("data").commands.items()}
    for name, command in commands.items():
        assert command.help, name
        for parameter in command.params:
            assert parameter.help, (name, parameter.name)
            assert len(parameter.help) <= 200, (name, parameter.name)


def test_version(lgcn_):
    assert lgcn_("--version").out == f"lgcn {lgcn.__version__}\n"
