"""The zoo's machinery, on packages that the tests have, and what the README says of it.

Cases: B13, B23, B25, B27, B29, B121 for every package that is installed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import Run, refused
from optim_hydra import build_optimizer
from optim_hydra.cli.catalogue import MODULES, quiet
from optim_hydra.missing import optimizer_names
from optim_hydra.needs import PROTOCOLS, need_of
from optim_hydra.signature import signature_of
from optim_hydra.wrapping import find_wrapper

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
MARKS = ("<!-- benchmarks/zoo.py: -->", "<!-- :benchmarks/zoo.py -->")
INSTALLED = [i for i in MODULES if importlib.util.find_spec(i.partition(".")[0])]
EXTRA = "override_optimizer_config"
ODD = """
import os, time
from torch.optim import SGD

class Plain(SGD):
    def __init__(self, params, lr=1e-3, momentum=0.0, swallowed=1.0, **kwargs):
        super().__init__(params, lr, momentum=momentum)
        swallowed

class Crashes(SGD):
    def __init__(self, params, lr=1e-3):
        os._exit(7)

class Hangs(SGD):
    def __init__(self, params, lr=1e-3):
        time.sleep(1000)

class Raises(SGD):
    def __init__(self, params, lr=1e-3):
        raise TypeError("never")
"""
RUN = "import sys; sys.path.insert(0, {!r}); import zoo_package; {}"


def rows_of(run: Run, folder: Path, code: str) -> dict[str, dict[str, Any]]:
    """Return what became of each class, by its name."""
    result = run("-c", RUN.format(str(BENCHMARKS), code), PYTHONPATH=str(folder))
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {row["name"]: row for row in rows if "name" in row}


@pytest.mark.parametrize(
    ("impl", "names"),
    [
        ("torch.optim", ["AdamW", "LBFGS", "SparseAdam", "SGD"]),
        ("pytorch_optimizer", ["AliG", "LOMO", "Muon", "SAM", "AdaHessian"]),
        ("bitsandbytes.optim", ["SGD8bit"]),
        ("schedulefree", ["AdamWScheduleFree", "SGDScheduleFreeClosure"]),
    ],
)
def test_a_class_is_built_trained_and_loses_nothing(
    run_fresh: Run, tmp_path: Path, impl: str, names: list[str]
) -> None:
    rows = rows_of(run_fresh, tmp_path, f"zoo_package.main({impl!r}, {names})")
    assert list(rows) == names
    for row in rows.values():
        assert (row["built"], row["trained"]) == (True, True), row
        assert (row["refused"], row["broken"], row["lost"]) == ("", "", [])
        assert row["raw"] == []
        assert row["values"] > 4


def test_what_breaks_is_a_row_of_its_own(run_fresh: Run, tmp_path: Path) -> None:
    (tmp_path / "odd_impl.py").write_text(ODD)
    version = "zoo_package._version = lambda impl: '1'; zoo_package.TIMEOUT_S = 8; "
    rows = rows_of(run_fresh, tmp_path, version + "zoo_package.main('odd_impl', [])")
    assert {name: row["broken"] for name, row in rows.items() if row["broken"]} == {
        "Crashes": "its process ended with exit code 7",
        "Hangs": "not done after 8 s",
        "Raises": "odd_impl.Raises refuses its arguments: TypeError: never",
    }
    plain = rows["Plain"]
    # What is read and dropped is lost with either; what is swallowed with the rule.
    assert plain["trained"]
    assert plain["lost"] == ["swallowed"]
    fixed = ["weight_decay", "betas", "eps", "swallowed", "definitely_not_an_argument"]
    assert plain["fixed_lost"] == fixed


def test_the_fixed_rule_goes_by_the_name(
    run_fresh: Run, tmp_path: Path, module: nn.Module
) -> None:
    names = ["AdamW", "RMSprop", "Rprop", "LBFGS"]
    rows = rows_of(run_fresh, tmp_path, f"zoo_package.main('torch.optim', {names})")
    fixed = {n: (row["fixed_built"], row["fixed_lost"]) for n, row in rows.items()}
    assert fixed == {
        "AdamW": (True, []),
        "RMSprop": (True, ["betas"]),
        "Rprop": (False, []),
        "LBFGS": (False, []),
    }


def test_the_table_of_the_readme_says_that_nothing_is_lost() -> None:
    text = (ROOT / "README.md").read_text()
    table = text.partition(MARKS[0])[2].partition(MARKS[1])[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    rows = [row for row in lines if len(row) == 10 and row[2].isdigit()]
    figures = {row[0]: list(map(int, row[2:])) for row in rows}
    assert {"`torch.optim`", "`pytorch_optimizer`", "`heavyball`", "all"} < set(figures)
    for name, (classes, built, trained, refused_ones, lost, *_) in figures.items():
        assert built == trained, name
        assert built + refused_ones == classes, name
        assert lost == 0, name
    assert "Errors at them that are not the library's: 0." in table
    told = [row for row in lines if len(row) == 2 and row[0].startswith("`")]
    assert len(told) == figures["all"][3]


@functools.cache
def classes_of(impl: str) -> dict[str, type]:
    """Return the classes of a package that take parameters and keywords only."""
    with quiet():
        module = importlib.import_module(impl)
    found = {name: getattr(module, name) for name in optimizer_names(module)}
    return {
        name: cls
        for name, cls in found.items()
        if not find_wrapper(cls, None) and need_of(cls) == need_of(torch.optim.AdamW)
    }


def node_of(impl: str, name: str, **items: Any) -> dict[str, Any]:
    """Return a node with whatever a class has to be given."""
    cls = classes_of(impl)[name]
    required = {"num_data": 64, "num_iterations": 100}
    taken = signature_of(cls).arguments
    extra = {n: v for n, v in required.items() if n in taken and taken[n].is_required}
    further = {**extra, **items.pop(EXTRA, {})}
    return {"optimizer_impl": impl, "optimizer": name, **items, EXTRA: further}


@pytest.mark.parametrize("impl", INSTALLED)
def test_B13_kin_a_wrong_letter_in_the_name_of_any_class(
    module: nn.Module, impl: str
) -> None:
    for name in classes_of(impl):
        text = str(refused(module, {"optimizer_impl": impl, "optimizer": f"{name}x"}))
        assert f"has no {name}x: did you mean " in text
        names = text.partition("did you mean ")[2].partition(" @ ")[0].strip("?")
        assert name in names.split(", ")[:3]


@pytest.mark.parametrize("impl", INSTALLED)
def test_B23_kin_any_class_builds_from_its_name(module: nn.Module, impl: str) -> None:
    for name, cls in classes_of(impl).items():
        optimizer = build_optimizer(module, node_of(impl, name), provides=PROTOCOLS)
        assert type(optimizer) is cls


@pytest.mark.parametrize("impl", INSTALLED)
def test_B25_kin_a_misspelt_argument_of_any_class(module: nn.Module, impl: str) -> None:
    for name in classes_of(impl):
        node = node_of(impl, name, **{EXTRA: {"weight_decya": 0.1, "no_such": 1}})
        error = refused(module, node)
        keys = [problem.key for problem in error.problems]
        assert f"{EXTRA}.weight_decya" in keys
        assert f"{EXTRA}.no_such" in keys


@pytest.mark.parametrize("impl", INSTALLED)
def test_B27_kin_betas_reach_any_class_or_are_refused(
    module: nn.Module, impl: str
) -> None:
    for name, cls in classes_of(impl).items():
        taken = signature_of(cls).arguments.get("betas")
        default = taken.default if taken else None
        if not isinstance(default, (tuple, list)):
            error = refused(module, node_of(impl, name, betas=[0.85, 0.93]))
            assert error.problems[0].key == "betas"
            continue
        betas = [0.85, 0.93, 0.97][: len(default)]
        optimizer = build_optimizer(module, node_of(impl, name, betas=betas))
        held = {**optimizer.defaults, **optimizer.param_groups[0]}
        found = [v for value in held.values() for v in _flat(value)]
        assert set(betas) <= set(found), name


@pytest.mark.parametrize("impl", INSTALLED)
def test_B29_B121_kin_switches_reach_any_class_that_has_them(
    module: nn.Module, impl: str
) -> None:
    for name, cls in classes_of(impl).items():
        if "foreach" in signature_of(cls).arguments:
            node = node_of(impl, name, **{EXTRA: {"foreach": False}})
            optimizer = build_optimizer(module, node)
            held = {**vars(optimizer), **optimizer.param_groups[0]}
            assert held["foreach"] is False, name
        else:
            node = node_of(impl, name, implementation="foreach")
            text = str(refused(module, node))
            assert "has no foreach implementation: leave it null" in text


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for each in value for item in _flat(each)]
    return [float(value)] if isinstance(value, (int, float)) else []
