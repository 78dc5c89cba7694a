from __future__ import annotations

import csv
import importlib
import inspect

import pytest

from tracehouse import resources
from tracehouse.analysis import op_categories
from tracehouse.formulas import registry
from tracehouse.formulas.model import ABSENT
from tracehouse.formulas.registry import MODULES, WITHOUT_FORMULA, model_of

RULES = list(csv.DictReader(resources.data_text("op_categories.csv").splitlines()))
FAMILIES = {row["family"] or "none" for row in RULES}
PATTERNED = {row["family"] for row in RULES if row["match"] != "exact"} - {"none"}
EXACT = {row["pattern"]: row["family"] for row in RULES if row["match"] == "exact"}


def models(module):
    return importlib.import_module(f"tracehouse.formulas.{module}").MODELS


def every_model():
    return [pytest.param(m, id=f"{name}-{m.name}") for name in MODULES for m in models(name)]


def test_every_family_has_a_module_or_a_reason():
    assert sorted(FAMILIES - _listed() - set(WITHOUT_FORMULA)) == []


def test_no_family_is_in_both():
    assert sorted(_listed() & set(WITHOUT_FORMULA)) == []


def test_nothing_is_listed_that_is_no_family():
    assert sorted((_listed() | set(WITHOUT_FORMULA)) - FAMILIES - {"none"}) == []


def test_no_family_is_in_two_modules():
    listed = [family for families in MODULES.values() for family in families]
    assert len(listed) == len(set(listed))


def _listed():
    return {family for families in MODULES.values() for family in families}


def test_every_reason_is_a_text():
    assert all(reason.strip() for reason in WITHOUT_FORMULA.values())


@pytest.mark.parametrize("module", MODULES)
def test_a_module_defines_the_families_it_is_listed_with(module):
    defined = [family for model in models(module) for family in model.families]
    assert sorted(defined) == sorted(MODULES[module])


@pytest.mark.parametrize("family", sorted(_listed()))
def test_a_family_has_one_model(family):
    model = model_of(family)
    assert model is not None
    assert family in model.families


@pytest.mark.parametrize("family", [*sorted(WITHOUT_FORMULA), "no such family"])
def test_no_model(family):
    assert model_of(family) is None


@pytest.mark.parametrize("model", every_model())
def test_named_ops_are_of_the_model_s_families(model):
    """By an exact pattern, or by the pattern that all ops of a kind have, such as foreach ops."""
    families = {op: op_categories.load().family(op) for op in model.ops}
    wrong = {
        op: family
        for op, family in families.items()
        if family not in model.families or (op not in EXACT and family not in PATTERNED)
    }
    assert wrong == {}


@pytest.mark.parametrize("model", every_model())
def test_slots_that_are_set_exist(model):
    for slots in (*model.families.values(), *model.ops.values()):
        assert slots is None or set(slots) <= set(model.slots)


@pytest.mark.parametrize("model", every_model())
def test_slots_are_whole_numbers(model):
    for slots in (model.slots, *model.families.values(), *model.ops.values()):
        assert all(type(value) is int for value in (slots or {}).values())


@pytest.mark.parametrize("model", every_model())
def test_fields(model):
    assert model.unit in ("matrix", "vector", "")
    assert len(set(model.labels)) == len(model.labels)
    assert inspect.getdoc(model.kernel), "its docstring says what the slots are"


def test_names_of_models_are_distinct():
    names = [model.name for module in MODULES for model in models(module)]
    assert sorted(names) == sorted(set(names))


def pairs():
    """Forward families with a model whose backward family has one too."""
    return [
        pytest.param(family, back, id=back)
        for family in sorted(_listed())
        for back in (f"{family}_bwd",)
        if back in _listed()
    ]


@pytest.mark.parametrize(("family", "back"), pairs())
def test_a_backward_model_can_be_evaluated_from_the_forward_call(family, back):
    forward, backward = model_of(family), model_of(back)
    shared = set(forward.slots) & set(backward.slots)
    assert shared, "the models of an op and of its backward name what they read alike"
    op = next(pattern for pattern, of in EXACT.items() if of == family)
    values = backward.slots_of_forward(forward, op, family)
    own = forward.slots_of(op, family)
    assert (values is None) == (own is None)
    if own is not None:
        given = dict(zip(forward.slots, own, strict=True))
        expected = [given.get(slot, default) for slot, default in backward.slots.items()]
        assert values == expected


def test_slots_of_an_op():
    model = model_of("gemm")
    named = dict(zip(model.slots, model.slots_of("aten::addmm", "gemm"), strict=True))
    assert (named["added"], named["a"], named["b"]) == (0, 1, 2)
    named = dict(zip(model.slots, model.slots_of("aten::mm", "gemm"), strict=True))
    assert (named["added"], named["a"], named["b"]) == (ABSENT, 0, 1)
    vendor = model_of("gemm_scaled")
    assert vendor.slots_of("aten::_cslt_sparse_mm", "gemm_scaled") is None


def test_a_module_is_imported_only_when_needed(monkeypatch):
    monkeypatch.setitem(registry.MODULES, "no_such_module", ("no such family either",))
    registry._modules.cache_clear()
    registry.model_of.cache_clear()
    try:
        assert model_of("gemm") is not None
        with pytest.raises(ModuleNotFoundError):
            model_of("no such family either")
    finally:
        monkeypatch.undo()
        registry._modules.cache_clear()
        registry.model_of.cache_clear()
