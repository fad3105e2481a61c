"""Imports go one way, and what does not need torch does not import it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "optim_hydra"

# From the bottom up: a module may import from lines above its own, never from below.
LAYERS = [
    {
        "errors",
        "version",
        "value_checks",
        "foreign_key",
        "need_kinds",
        "journal",
        "name_index",
        "collection",
        "kept_on_copies",
        "rate_tensors",
    },
    {
        "declared",
        "replicas",
        "foreign_keys",
        "renamed_keys",
        "list_checks",
        "references",
        "needs_table",
        "saved_kinds",
        "sweep.plain_results",
        "unwrapping",
    },
    {"schema_groups"},
    {"tree", "schema_layers", "signature", "missing", "schedule", "sweep.metrics"},
    {"decay_meaning", "needs", "sweep.records", "sweep.curves"},
    {"yaml_lines"},
    {"field_checks"},
    {"schema", "rename_notices", "registry", "argument_values"},
    {"targets", "miniature"},
    {"scheduler_classes"},
    {"class_factors", "schedule_reads"},
    {"bound_schedule"},
    {"schedule_checks", "torch_classes"},
    {"schedule_plan", "clipping", "scheduled_lr", "rewriting"},
    {"conversion_verl"},
    {"conversion_megatron", "conversion_engines"},
    {"conversion_transformers"},
    {"dialects"},
    {"conversion"},
    {"foreign_nodes"},
    {"node"},
    {"migration", "json_schema", "given"},
    {"override_text", "arguments", "checking"},
    {"compiled_step", "small_trial"},
    {"step_in_backward"},
    {"wrapping", "need_checks", "compile_checks"},
    {"planning", "convert"},
    {"survey", "structure", "inner_state", "state_identity", "hooked_step"},
    {"written_keys"},
    {"state_slots", "saved_state"},
    {"saved_groups", "local_launcher", "packed_state"},
    {
        "saved_values",
        "shared_state",
        "plain_load",
        "put_back",
        "differences",
        "saved_entries",
    },
    {"container_checks", "in_backward_checks"},
    {"inner_optimizers"},
    {"parameters", "roles", "matching"},
    {"unmatched"},
    {
        "layers",
        "watch",
        "resume_values",
        "state_placement",
        "state_templates",
    },
    {
        "resume_report",
        "state_shapes",
        "saved_schedules",
        "saved_order",
        "saved_part",
        "state_memory",
    },
    {"kept_checks", "fresh_state", "trial_step"},
    {"state_checks"},
    {"left_out"},
    {"resume", "checkpoint"},
    {"export", "hooked_state"},
    {"placing"},
    {"groups"},
    {"implementation"},
    {"group_records", "parameter_checks", "calls"},
    {"construct"},
    {"assembly", "lr_scheduler"},
    {"model_parts"},
    {"container", "report"},
    {"prepared"},
    {"builder"},
    {"mounts", "store"},
    {"parts", "factory", "source", "validation"},
    {"migrating.units", "migrating.shell_words", "migrating.files"},
    {"migrating.references"},
    {"migrating.edits"},
    {"migrating.pieces", "migrating.removal", "migrating.yaml_nodes"},
    {"migrating.editors", "migrating.settled", "migrating.sure_keys"},
    {"migrating.flag_names"},
    {"migrating.settings"},
    {"migrating.yaml_places"},
    {"migrating.yaml_deletions"},
    {"migrating.yaml_items", "migrating.yaml_edits", "migrating.overrides"},
    {"migrating.yaml_proof", "migrating.flags"},
    {
        "migrating.yaml_overrides",
        "migrating.yaml_conversion",
        "migrating.yaml_settings",
    },
    {"migrating.python_data"},
    {"migrating.scripts", "migrating.python_code"},
    {"migrating.yaml_blocks"},
    {"migrating.yaml_texts"},
    {
        "migrating.markdown",
        "migrating.toml_settings",
        "migrating.together",
        "migrating.referred",
    },
    {"migrating.runs"},
    {"migrating.paths"},
    {"registration"},
    {"sweep.results", "sweep.nodes", "sweep.planned_jobs", "sweep.folder_lock"},
    {"sweep.settings"},
    {"sweep.resumed", "sweep.progress", "sweep.resuming", "sweep.job_tables"},
    {"sweep.collect"},
    {"sweep.jobs", "sweep.callback", "sweep.seeds", "sweep.page_libraries"},
    {"sweep.page_curves"},
    {"sweep.page_data"},
    {"sweep.leaderboard", "sweep.page"},
    {"sweep.reporting"},
    {"app"},
    {"cli.describing", "cli.foreign_nodes", "cli.models", "cli.rates", "cli.remarks"},
    {"cli.composing", "cli.catalogue"},
    {"cli.check"},
    {"cli.check_output", "cli.listing", "cli.show", "cli.schema"},
    {"cli.plot", "cli.migrate"},
    {"cli.optimizer_commands"},
    {"cli.app"},
    {"__init__"},
]


def modules() -> set[str]:
    """Name the modules, those of subpackages with its name; `__init__` counts once."""
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    names = {".".join(path.with_suffix("").parts) for path in paths}
    own = {name for name in names if not name.startswith(("conf.", "hydra_plugins."))}
    return {name for name in own if "." not in name or not name.endswith("__")}


def imports_of(module: str) -> set[str]:
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "optim_hydra."
        ):
            names.add(node.module.removeprefix("optim_hydra."))
    return names


def test_every_module_has_a_layer() -> None:
    assert modules() == set().union(*LAYERS)


@pytest.mark.parametrize("module", sorted(set().union(*LAYERS)))
def test_imports_go_one_way(module: str) -> None:
    layer = next(i for i, names in enumerate(LAYERS) if module in names)
    below = set().union(*LAYERS[:layer])
    assert imports_of(module) <= below


@pytest.mark.parametrize(
    "code",
    [
        "import optim_hydra",
        "import optim_hydra; optim_hydra.OptimConfig(lr=1e-3)",
        "import optim_hydra; optim_hydra.migrate_overrides(['optim.grad_clip=1'])",
        "import optim_hydra, hydra\n"
        "with hydra.initialize(version_base=None, config_path=None):\n"
        "    cfg = optim_hydra.compose(overrides=['+optim@actor.optim=lion'])\n"
        "optim_hydra.validate(cfg)\n"
        "from hydra.utils import instantiate\n"
        "instantiate(cfg)\n",
    ],
)
def test_torch_and_optional_packages_are_not_imported(run_fresh, code: str) -> None:
    check = (
        "\nimport sys"
        "\nheavy = {'torch', 'lion_pytorch', 'matplotlib', 'numpy'} & set(sys.modules)"
        "\nassert not heavy, heavy"
    )
    result = run_fresh("-W", "ignore", "-c", code + check)
    assert result.returncode == 0, result.stderr


def test_importing_leaves_hydras_global_state_alone(run_fresh) -> None:
    code = """
import importlib, optim_hydra
from hydra.core.global_hydra import GlobalHydra
from optim_hydra.registration import register
register()
register()
importlib.reload(optim_hydra)
assert not GlobalHydra.instance().is_initialized()
"""
    result = run_fresh("-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr
