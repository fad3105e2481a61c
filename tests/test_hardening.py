"""Odd but legal input, hostile input, and failures: nothing raw, nothing silent."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import namedtuple
from functools import partialmethod
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, SequentialLR

from optim_hydra import (
    ConfigError,
    OptimHydraError,
    build_lr_scheduler,
    build_optimizer,
    grad_norm,
    migrate,
    register_optimizer,
    register_schedule,
    validate,
)
from optim_hydra.arguments import Given, plan_arguments
from optim_hydra.declared import NameTakenError, set_allowed_impls
from optim_hydra.errors import Problems, UnknownKeyError, WrongObjectError


def sgd(**fields: Any) -> dict[str, Any]:
    return {"optimizer": "SGD", "weight_decay": 0.0, **fields}


def planned(cls: type, **values: Any) -> dict[str, Any]:
    """Fit further arguments to a class and return what it would be called with."""
    problems = Problems("optim")
    given = [Given(name, value, name) for name, value in values.items()]
    plan = plan_arguments(cls, given, problems, strict=True)
    problems.raise_if_any()
    return plan.kwargs


class Typed:
    """Take arguments whose defaults say little."""

    def __init__(
        self,
        params: Any,
        seed: int = 0,
        k: int | None = None,
        flag: bool | None = None,
        mode: Literal["int8", "fp8"] | None = None,
        eps: tuple[float | None, float] = (None, 1e-3),
        momentum: float = 0.9,
    ) -> None: ...


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ({"seed": 9007199254740993}, 9007199254740993),
        ({"seed": "9007199254740993"}, 9007199254740993),
        ({"k": "12"}, 12),
        ({"mode": "int8"}, "int8"),
        ({"eps": ["1e-30", "1e-3"]}, (1e-30, 1e-3)),
        ({"eps": [None, 1]}, (None, 1.0)),
        ({"flag": None}, None),
    ],
)
def test_values_arrive_as_they_were_meant(given: dict[str, Any], held: Any) -> None:
    assert list(planned(Typed, **given).values()) == [held]


@pytest.mark.parametrize(
    "given",
    [
        {"k": "2.7"},
        {"k": "nan"},
        {"k": "inf"},
        {"flag": 5},
        {"flag": [1]},
        {"flag": "yes"},
        {"momentum": float("nan")},
        {"momentum": {"a": 1}},
    ],
)
def test_values_of_another_kind_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(Typed, **given)
    assert str(caught.value).endswith(f"@ optim.{next(iter(given))}")


def test_a_positional_only_parameter_and_a_partialmethod_can_be_configured() -> None:
    class Positional:
        def __init__(self, params: Any, /, lr: float = 1.0) -> None: ...

    class Partial:
        def _init(
            self, params: Any, lr: float = 1.0, foreach: bool = False
        ) -> None: ...

        __init__ = partialmethod(_init, foreach=True)

    assert planned(Positional, lr=0.5) == {"lr": 0.5}
    assert planned(Partial, lr=0.5) == {"lr": 0.5}
    with pytest.raises(UnknownKeyError, match="takes no lrr: did you mean lr"):
        planned(Positional, lrr=0.5)


def test_numpy_and_config_values_become_plain(module: nn.Module, tmp_path) -> None:
    pair = namedtuple("pair", "first second")  # noqa: PYI024 - what users have
    node = {
        "lr": np.float32(0.5),
        "betas": OmegaConf.create([0.8, np.float64(0.9).item()]),
        "override_optimizer_config": {"foreach": np.bool_(False)},
    }
    optimizer = build_optimizer(module, node)
    assert optimizer.param_groups[0]["foreach"] is False
    groups = [{"params": module.parameters(), "betas": OmegaConf.create([0.7, 0.9])}]
    optimizer = build_optimizer(groups, {"lr": np.float64(0.1)})
    assert optimizer.param_groups[0]["betas"] == (0.7, 0.9)
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    torch.load(tmp_path / "optimizer.pt", weights_only=True)
    assert planned(Typed, eps=pair(None, 2)) == {"eps": (None, 2.0)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lr": "high"}, "parameter group 0, lr: 'high' is not a float"),
        ({"lr": -1}, "parameter group 0, lr: -1 is not a finite float >= 0"),
        ({"lr": None}, "parameter group 0, lr: null is not allowed"),
        ({"betas": [0.1, 0.2, 0.3]}, "parameter group 0, betas: betas has 3 of the 2"),
        ({"foreach": "yes"}, "parameter group 0, foreach: 'yes' is not a bool"),
        ({"weight_deacy": 0.1}, "parameter group 0 has the key weight_deacy, which"),
        ({1: 0.1}, "parameter group 0 has the key 1, which AdamW does not take"),
    ],
)
def test_group_dicts_are_checked_like_a_node(
    module: nn.Module, values: dict[Any, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer([{"params": module.parameters(), **values}], {})
    assert str(caught.value).startswith(message)


def test_text_in_a_group_dict_becomes_a_number(module: nn.Module) -> None:
    groups = [{"params": module, "lr": "1e-3"}]
    optimizer = build_optimizer(groups, sgd())
    assert optimizer.param_groups[0]["lr"] == 1e-3
    assert len(optimizer.param_groups[0]["params"]) == 2


@pytest.mark.parametrize(
    "source",
    [None, 3, "model", {}, {1}, [1], [{"params": 3}], [{"params": "x"}], torch.ones(1)],
    ids=str,
)
def test_what_holds_no_parameters_is_refused(source: Any) -> None:
    with pytest.raises(WrongObjectError):
        build_optimizer(source, {})


def test_a_lazy_module_is_refused_before_anything_is_built() -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(nn.LazyLinear(2), {})
    assert str(caught.value) == (
        "the shapes of weight, bias are not known yet: run the module once before"
        " building its optimizer"
    )


def test_sparse_gradients_can_not_be_clipped() -> None:
    module = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 2))
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, sgd(clip_grad=1.0))
    assert str(caught.value) == (
        "sparse gradients can't be clipped: set clip_grad=null @ clip_grad"
    )


def test_names_of_the_users_own_are_kept() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.my_orig_mod = nn.Linear(2, 2, bias=False)
            self._orig_mod = nn.Linear(2, 2, bias=False)
            self.module = nn.Linear(2, 2, bias=False)

    names = build_optimizer(Model(), {}).param_groups[0]["param_names"]
    assert names == ["my_orig_mod.weight", "weight", "module.weight"]


def test_names_of_wrapped_modules_are_canonical(module: nn.Module) -> None:
    wrapped = torch.compile(nn.DataParallel(nn.Sequential(module)))
    names = build_optimizer(wrapped, {}).param_groups[0]["param_names"]
    assert names == ["0.weight", "0.bias"]


class Broken(torch.optim.Optimizer):
    """Forget to call the base class."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None: ...

    def step(self, closure: Any = None) -> None: ...


class Exits(torch.optim.SGD):
    """Leave the program instead of raising."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("cls", "message"), [(Broken, "makes no optimizer"), (Exits, "SystemExit: 3")]
)
def test_a_broken_class_is_an_error_of_ours(
    module: nn.Module, cls: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.optim, "BrokenOne", cls, raising=False)
    with pytest.raises(ConfigError, match=message):
        build_optimizer(module, {"optimizer": "BrokenOne"})


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit(0)", "def __getattr__(name): raise RuntimeError(1)"]
)
def test_a_broken_module_is_an_error_of_ours(
    module: nn.Module, code: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_impl.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_impl", raising=False)
    with pytest.raises(ConfigError, match="odd_impl"):
        build_optimizer(module, {"optimizer_impl": "odd_impl", "optimizer": "A"})


def test_a_factory_can_be_used_twice(module: nn.Module, monkeypatch) -> None:
    class Pops(torch.optim.SGD):
        def __init__(self, params: Any, lr: float = 1e-3, extra: dict | None = None):
            super().__init__(params, lr=extra.pop("lr"))

    monkeypatch.setattr(torch.optim, "Pops", Pops, raising=False)
    node = {"_target_": "optim_hydra.build", "optimizer": "Pops"}
    node["override_optimizer_config"] = {"extra": {"lr": 0.5}}
    factory = instantiate({**node, "_recursive_": False, "weight_decay": 0.01})
    assert [factory(module).defaults["lr"] for _ in range(2)] == [0.5, 0.5]


@pytest.mark.parametrize("path", ["optim_hydra.builder.logging", "optim_hydra.build.x"])
def test_only_the_librarys_own_target_is_ours(compose, path: str) -> None:
    with pytest.raises(ConfigError, match=f"not to {path}"):
        validate(compose(f"actor.optim._target_={path}"))


EVIL = "actor.optim.override_optimizer_config={foreach: {_target_: builtins.print}}"


@pytest.mark.parametrize("more", [(), ("actor.optim._recursive_=true",)])
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_hidden_target_is_never_called(
    compose, more: tuple[str, ...], strict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cfg = compose(EVIL, f"actor.optim.strict={strict}", *more)
    for check in (validate, instantiate, lambda c: instantiate(c.actor.optim)):
        with pytest.raises(Exception, match="_target_ is refused here"):
            check(cfg)
    assert capsys.readouterr().out == ""


def test_open_values_are_left_to_the_build(module: nn.Module, compose) -> None:
    yaml = "total: ???\nactor: {optim: {total_training_steps: '${total}'}}\n"
    cfg = compose("critic.optim.lr=???", "critic.optim.optimizer=???", yaml=yaml)
    validate(cfg)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, cfg.critic.optim)
    assert [problem.key for problem in caught.value.problems] == [
        "critic.optim.optimizer",
        "critic.optim.lr",
    ]


def test_a_reference_that_leads_nowhere_hides_no_other_problem(compose) -> None:
    cfg = compose("actor.optim.lr=${x.y}", "actor.optim.eps=-1", "critic.optim.lr=-1")
    with pytest.raises(ConfigError) as caught:
        validate(cfg)
    assert [problem.key for problem in caught.value.problems] == [
        "actor.optim.lr",
        "actor.optim.eps",
        "critic.optim.lr",
    ]


def test_classes_can_be_validated_too(compose) -> None:
    cfg = compose(
        "actor.optim.optimizer=Adamw", "critic.optim.optimizer_impl=heavyball"
    )
    validate(cfg)
    with pytest.raises(ConfigError) as caught:
        validate(cfg, classes=True)
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigError, match=r"@ optim\.lr"):
        validate({"optim": {"lr": -1}})


def test_sequential_schedules_resume_at_their_rate(module: nn.Module) -> None:
    def build() -> tuple[torch.optim.Optimizer, SequentialLR]:
        optimizer = build_optimizer(module, sgd(lr=1.0))
        first = build_lr_scheduler(optimizer, sgd(lr=1.0, lr_warmup_steps=4))
        linear = sgd(lr=1.0, lr_scheduler_type="linear", total_training_steps=10)
        second = build_lr_scheduler(optimizer, linear)
        return optimizer, SequentialLR(optimizer, [first, second], milestones=[5])

    optimizer, scheduler = build()
    for saved_at in range(9):
        state = copy.deepcopy(scheduler.state_dict())
        groups = copy.deepcopy(optimizer.state_dict())
        resumed_optimizer, resumed = build()
        resumed_optimizer.load_state_dict(groups)
        resumed.load_state_dict(state)
        for o, s in ((optimizer, scheduler), (resumed_optimizer, resumed)):
            o.step()
            s.step()
        rate = resumed_optimizer.param_groups[0]["lr"]
        assert rate == optimizer.param_groups[0]["lr"], saved_at
        assert 0.0 <= rate <= 1.0


@pytest.mark.parametrize(
    "state",
    [{}, None, [1], {"last_epoch": None}, {"last_epoch": "x"}, {"last_epoch": 3.7}],
)
def test_a_state_without_a_step_changes_nothing(module: nn.Module, state: Any) -> None:
    config = sgd(lr=1.0, lr_warmup_steps=4)
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    before = scheduler.state_dict()
    with pytest.raises(ConfigError, match="holds no step"):
        scheduler.load_state_dict(state)
    assert scheduler.state_dict() == before
    assert optimizer.param_groups[0]["lr"] == 0.0


def test_a_group_added_later_follows_from_its_own_rate(module: nn.Module) -> None:
    config = sgd(lr=1.0, lr_warmup_steps=4)
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    added = [("scale", nn.Parameter(torch.ones(1)))]
    optimizer.add_param_group({"params": added, "lr": 0.1})
    optimizer.step()
    scheduler.step()
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.25, 0.025])
    scheduler.load_state_dict({"last_epoch": 2})
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.5, 0.05])


@pytest.mark.parametrize(("warmup", "decay", "total"), [(0.5, 0.5, 5), (0.9, 0.1, 15)])
def test_ratios_that_sum_to_one_fit_any_total(
    module: nn.Module, warmup: float, decay: float, total: int
) -> None:
    config = sgd(
        lr=1.0,
        lr_scheduler_type="wsd",
        lr_warmup_steps_ratio=warmup,
        lr_decay_steps_ratio=decay,
    )
    optimizer = build_optimizer(module, config)
    schedule = build_lr_scheduler(optimizer, config, total).schedule
    assert schedule.factor(schedule.warmup) == 1.0
    assert schedule.factor(total) == 0.0


def test_a_schedule_that_fails_is_named(module: nn.Module) -> None:
    @register_schedule("odd")
    def odd(step: int) -> float:
        return 1.0 / (step - 2)

    optimizer = build_optimizer(module, sgd())
    scheduler = build_lr_scheduler(optimizer, sgd(lr_scheduler_type="odd"))
    optimizer.step()
    scheduler.step()
    with pytest.raises(OptimHydraError, match=r"schedule 'odd' fails at step 2: Zero"):
        scheduler.step()


def test_names_belong_to_one_thing() -> None:
    register_optimizer("mine", torch.optim.SGD)
    with pytest.raises(NameTakenError, match="'mine' stands for torch"):
        register_optimizer("mine", "torch.optim.Adam")
    with pytest.raises(NameTakenError, match="'linear' is already"):
        register_schedule("linear")(lambda step: 1.0 / step)


def test_a_set_of_letters_is_no_allow_list(module: nn.Module) -> None:
    set_allowed_impls("torch.optim")
    build_optimizer(module, {})
    with pytest.raises(ConfigError, match="not among the modules this program allows"):
        build_optimizer(module, {"optimizer_impl": "torchao.optim", "optimizer": "A"})


def test_null_under_the_old_clipping_key_switches_it_off(compose) -> None:
    yaml = "actor: {optim: {clip_grad: 0.5}}\ncritic: {optim: {clip_grad: 0.5}}\n"
    experiment = "# @package _global_\ncritic: {optim: {grad_clip: null}}\n"
    with pytest.warns(FutureWarning):
        cfg = compose(
            "actor.optim.grad_clip=null",
            "+experiment=off",
            yaml=yaml,
            files={"experiment/off.yaml": experiment},
        )
    assert (cfg.actor.optim.clip_grad, cfg.critic.optim.clip_grad) == (None, None)


def test_a_step_that_calls_its_base_records_the_norm_before_clipping(module) -> None:
    class Twice(torch.optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer = build_optimizer(module, {"clip_grad": 0.1})  # wraps AdamW's step
    torch.optim.TwiceAdamW = Twice
    try:
        twice = build_optimizer(module, {"optimizer": "TwiceAdamW", "clip_grad": 0.1})
    finally:
        del torch.optim.TwiceAdamW
    for made in (optimizer, twice):
        made.zero_grad()
        (100 * module(torch.ones(2, 4))).sum().backward()
        made.step()
        assert grad_norm(made) > 100


def test_errors_travel_between_processes(module: nn.Module) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"lr": -1, "optimizer_impl": "surely_missing_pkg"})
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (type(copied), str(copied)) == (ConfigError, str(caught.value))
    assert copied.problems == caught.value.problems


def test_migrate_takes_no_file_name() -> None:
    with pytest.raises(WrongObjectError, match="not a str"):
        migrate("saved.yaml")


def test_sequential_with_torchs_schedules_resumes_at_its_rate(module) -> None:
    def build() -> tuple[torch.optim.Optimizer, SequentialLR]:
        optimizer = build_optimizer(module, sgd(lr=1.0))
        warmup = build_lr_scheduler(optimizer, sgd(lr=1.0, lr_warmup_steps=4))
        after = ExponentialLR(optimizer, 0.9)
        return optimizer, SequentialLR(optimizer, [warmup, after], milestones=[4])

    optimizer, scheduler = build()
    for _ in range(10):
        optimizer.step()
        scheduler.step()
    resumed_optimizer, resumed = build()
    resumed_optimizer.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    for _ in range(3):
        rates = [o.param_groups[0]["lr"] for o in (optimizer, resumed_optimizer)]
        assert rates[0] == rates[1]
        for o, s in ((optimizer, scheduler), (resumed_optimizer, resumed)):
            o.step()
            s.step()


class Scaled(torch.optim.SGD):
    """Take the closure second."""

    def step(self, scale: float = 1.0, closure: Any = None) -> Any:
        return super().step(closure)


@pytest.mark.parametrize("call", ["second", "keyword", "both"])
def test_a_closure_is_clipped_wherever_step_takes_it(module, call, monkeypatch) -> None:
    monkeypatch.setattr(torch.optim, "Scaled", Scaled, raising=False)
    config = sgd(optimizer="Scaled", lr=1.0, clip_grad=0.1)
    optimizer = build_optimizer(module, config)
    before = module.weight.detach().clone()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (100 * module(torch.ones(2, 4))).sum()
        loss.backward()
        return loss

    if call == "second":
        optimizer.step(1.0, closure)
    elif call == "keyword":
        optimizer.step(closure=closure)
    else:
        optimizer.step(1.0, closure=closure)
    assert (module.weight.detach() - before).norm() <= 0.1
    assert grad_norm(optimizer) > 100


def test_pickles_of_optimizers_that_do_not_clip_are_torchs_own(module) -> None:
    build_optimizer(module, {"clip_grad": 1.0})
    assert b"optim_hydra" not in pickle.dumps(torch.optim.AdamW(module.parameters()))
    twice = copy.deepcopy(copy.deepcopy(build_optimizer(module, {"clip_grad": 1.0})))
    (100 * twice.param_groups[0]["params"][0]).sum().backward()
    twice.step()
    assert grad_norm(twice) > 1


def test_sparse_gradients_of_bare_parameters_are_named_at_the_step() -> None:
    module = nn.Embedding(7, 4, sparse=True)
    optimizer = build_optimizer(module.parameters(), sgd(clip_grad=1.0))
    module(torch.tensor([1])).sum().backward()
    with pytest.raises(ConfigError, match="set clip_grad=null"):
        optimizer.step()
    frozen = nn.Sequential(module.requires_grad_(False), nn.Linear(4, 2))
    assert build_optimizer(frozen, sgd(clip_grad=1.0))


def test_groups_of_another_optimizer_and_tensor_rates_are_taken(module) -> None:
    old = build_optimizer(module, {"lr": 1e-3})
    copied = build_optimizer(old.param_groups, {"lr": 1e-2})
    assert copied.param_groups[0]["lr"] == 1e-3
    rate = torch.tensor(1e-3)
    groups = [{"params": module.parameters(), "lr": rate}]
    assert build_optimizer(groups, {}).param_groups[0]["lr"] is rate
    groups = [{"params": module.parameters(), "eps": (None, 1e-2)}]
    adafactor = build_optimizer(groups, {"optimizer": "Adafactor"})
    assert adafactor.param_groups[0]["eps"] == (None, 1e-2)


def test_a_hidden_target_behind_a_reference_is_never_called(compose, capsys) -> None:
    cfg = compose(
        "+evil={foreach: {_target_: builtins.print, _args_: [HACKED]}}",
        "actor.optim.override_optimizer_config=${evil}",
        "actor.optim._recursive_=true",
    )
    with pytest.raises(Exception, match="_target_ is refused here"):
        instantiate(cfg.actor.optim)
    assert capsys.readouterr().out == ""


def test_open_classes_and_arguments_are_left_to_the_build(compose) -> None:
    extra = "actor.optim.override_optimizer_config"
    cfg = compose("actor.optim.optimizer=???", f"{extra}.momentum=???")
    validate(cfg, classes=True)
    validate(
        compose("actor.optim.optimizer=SGD", f"{extra}.momentum=???"), classes=True
    )


def test_numbers_too_large_for_a_float_are_refused() -> None:
    with pytest.raises(ConfigError, match="is not a finite number"):
        planned(Typed, momentum=10**400)
    with pytest.raises(ConfigError, match="not a whole number such as 0"):
        planned(Typed, seed=2.5)
