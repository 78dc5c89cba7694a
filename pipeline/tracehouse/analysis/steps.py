"""Which annotations are steps, and which step each call and each GPU activity belongs to.

A step written twice, nested in another or mirrored on the GPU counts once. Work belongs to the step
around its launch on the thread; work without a launch to the one whose mirror on the GPU it is in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracehouse.analysis.columns import (
    Codes,
    Ints,
    Mask,
    Words,
    distinct_rows,
    numbered,
    pick,
    places,
)
from tracehouse.analysis.frame import Frame
from tracehouse.analysis.host import around, nest_rows
from tracehouse.analysis.step_grammars import UNPARSED, Grammars
from tracehouse.compute.stepping import (
    BARRIER,
    GENERIC,
    SPECIFIC,
    keep_steps,
    overlapping_runs,
    pair_in_order,
)
from tracehouse.vocab import Category, Role

NESTED, DUPLICATE, HOLDS_STEPS = "nested", "duplicate", "holds_steps"
_BARRED = {Role.DUMMY: "in_dummy", Role.CAPTURE: "in_capture"}
_ROLES = tuple(Role)
_STEP, _OTHER = _ROLES.index(Role.STEP), _ROLES.index(Role.OTHER)


@dataclass(frozen=True, slots=True)
class Steps:
    """The annotations of a trace (n,), ascending rows of the frame, and the steps among them.

    Steps have numbers 0, 1, 2 … in order of their starts. `step` is the number of the step that an
    annotation is or belongs to, -1 for none; `kept` (k,) are the rows that are steps, by number.
    """

    frame: Frame
    rows: Ints
    on_gpu: Mask
    role: Words
    why: Words
    rule: Words
    fields: Words
    numbers: pa.ListArray
    step: Ints
    kept: Ints
    is_unparsed: Mask  # (k,)
    of_process: Ints  # the kept rows whose whole process works for them; the others their thread
    parts: Ints  # rows of sub-steps that are of a step
    parts_step: Ints

    @property
    def again(self) -> Ints:
        """The rows that name a step which another row stands for: nested ones and duplicates."""
        return self.rows[self._is_told(NESTED, DUPLICATE)]

    def _is_told(self, *reasons: str) -> Mask:
        """Tell the annotations of the host that are no steps for one of these reasons."""
        is_reason = np.array([*(word in reasons for word in self.why.values), False])
        return is_reason[self.why.codes] & ~self.on_gpu

    def of_calls(self, rows: Ints) -> Ints:
        """Return the step that each row of the host starts in, -1 for none.

        The innermost on its thread, where a duplicate stands for its step; else one that the whole
        process works for; else the one that a sub-step around it is part of.
        """
        frame = self.frame
        if not len(self.kept):
            return np.full(len(rows), -1, dtype=np.int64)
        number = np.full(len(frame.event_id), -1, dtype=np.int64)
        number[self.kept] = np.arange(len(self.kept))
        number[self.parts] = self.parts_step
        twice = self._is_told(DUPLICATE)
        number[self.rows[twice]] = self.step[twice]
        on_thread = np.union1d(np.setdiff1d(self.kept, self.of_process), self.rows[twice])
        found = np.full(len(rows), -1, dtype=np.int64)
        for group, spans in (
            (frame.thread, on_thread),
            (frame.process, self.of_process),
            (frame.thread, self.parts),
        ):
            open_ = np.flatnonzero(found < 0)
            if len(spans) and len(open_):
                found[open_] = pick(number, around(frame, group, spans, rows[open_]))
        return found

    def of_activities(self, rows: Ints, calls: Ints, launched: Mask) -> Ints:
        """Return the step of each GPU activity (m,), -1 for none.

        `calls` are the rows of the host that it comes from, -1 for none; `launched` tells whether
        that is its launch. What was launched belongs to the step of its launch or to none; only
        where the trace has no step of the host at all does the mirror decide.
        """
        found = np.full(len(rows), -1, dtype=np.int64)
        starts = distinct_rows(calls)
        if len(starts) and len(self.kept):
            found = pick(self.of_calls(starts), places(starts, calls))
        mirrors = self.rows[self.on_gpu & (self.step >= 0)]
        if not len(mirrors):
            return found
        is_gpu_only = self.on_gpu[places(self.rows, self.kept)].all()
        open_ = np.flatnonzero((found < 0) & (is_gpu_only | ~launched))
        around_them = around(self.frame, self.frame.thread, mirrors, rows[open_])
        found[open_] = pick(self.step, places(self.rows, around_them))
        return found


def find_steps(frame: Frame, grammars: Grammars, *, has_one_clock: bool) -> Steps:
    """Find the steps of a trace.

    An op whose name is a step's counts as an annotation: PyTorch 1.8 files both as ops. Without any
    step on the host those on the GPU stand for them, one an occurrence over all streams.

    Source: inference §1 to §3, field_cases F65 and F66.
    """
    return _Search(frame, grammars, has_one_clock).result()


class _Search:
    """The annotations of a trace while their roles are decided; arrays are of the annotations."""

    def __init__(self, frame: Frame, grammars: Grammars, has_one_clock: bool) -> None:
        self.frame, self.grammars, self.has_one_clock = frame, grammars, has_one_clock
        notes = frame.rows(Category.USER_ANNOTATION)
        mirrors = frame.rows(Category.GPU_USER_ANNOTATION)
        ops = frame.rows(Category.CPU_OP)
        used, _ = frame.name.take(np.concatenate([notes, mirrors, ops])).used()
        said = grammars.read([frame.name.values[code] for code in used])
        place = np.full(len(frame.name.values) + 1, -1, dtype=np.int64)
        place[used] = np.arange(len(used))
        roles = np.array([*(_ROLES.index(r.role) for r in grammars.rules), _OTHER])
        rule_of = np.append(said.rule, -1)
        steps_of_ops = ops[roles[rule_of[place[frame.name.codes[ops]]]] == _STEP]
        self.rows = np.union1d(np.union1d(notes, steps_of_ops), mirrors)
        self.on_gpu = np.isin(self.rows, mirrors)
        self.place = place[frame.name.codes[self.rows]]
        self.said = said
        self.rule = rule_of[self.place]
        self.role = roles[self.rule]
        self.why = self.rule.copy()  # a rule, or len(rules) + a place in self.reasons
        self.reasons = [NESTED, DUPLICATE, HOLDS_STEPS, *_BARRED.values()]
        self.keeper = np.full(len(self.rows), -1, dtype=np.int64)  # place of the row it counts as

    def result(self) -> Steps:
        on_host = np.flatnonzero(~self.on_gpu)
        self._keep(on_host)
        has_host_steps = bool((self.keeper >= 0).any())
        if has_host_steps:
            self._drop_duplicates()
        else:
            self._keep(np.flatnonzero(self.on_gpu))
            self._join_streams()
        step, kept = self._numbers()
        if has_host_steps:
            self._set_aside(np.flatnonzero(self.on_gpu), -1)
            self._tie_sub_steps(step)
            self._tie_mirrors(step)
        return self._made(step, kept)

    def _keep(self, places_: Ints) -> None:
        """Decide which of some annotations count, each on its thread."""
        role = self.role[places_]
        taking_part = places_[(role != _OTHER) & (role != _ROLES.index(Role.SUB_STEP))]
        if not len(taking_part):
            return
        generic = self.grammars.has("generic")[self.rule]
        kind = np.where(generic, GENERIC, SPECIFIC)
        kind[self.role != _STEP] = BARRIER
        nesting = nest_rows(self.frame, self.rows[taking_part])
        order = taking_part[nesting.order]
        keeper, holder, barrier = keep_steps(nesting.parent, kind[order].astype(np.int8))
        self.keeper[order] = pick(order, keeper)
        self._set_aside(order[(keeper >= 0) & (keeper != np.arange(len(order)))], NESTED)
        is_barred = (barrier >= 0) & (barrier != np.arange(len(order)))
        for bar, reason in _BARRED.items():
            barring = self.role[pick(order, barrier)] == _ROLES.index(bar)
            barred = order[is_barred & barring]
            self._set_aside(barred, reason)
            self.role[barred] = _ROLES.index(bar)
        self._choose(order, pick(order, holder))

    def _choose(self, order: Ints, holder: Ints) -> None:
        """Choose between a generic step and the specific ones in it.

        One that holds a single one stands for it, name aside. One that holds several is no step,
        nor is one of the whole process in which one of another thread starts, nor any other of its
        rule in the process.
        """
        is_root = self.keeper[order] == order
        generic = order[is_root & self.grammars.has("generic")[self.rule[order]]]
        if not len(generic):
            return
        inner = order[holder >= 0]
        held = np.bincount(holder[holder >= 0], minlength=len(self.rows))
        process = self.frame.process[self.rows]
        specific = order[is_root & ~self.grammars.has("generic")[self.rule[order]]]
        gives_way = self.grammars.has("gives_way")[self.rule] & np.isin(process, process[specific])
        gives_way |= self._around_another_thread(generic, specific)
        kind = process * (len(self.grammars.rules) + 1) + self.rule
        released = generic[(held[generic] > 1) | gives_way[generic]]
        released = generic[np.isin(kind[generic], kind[released])]
        self._set_aside(released, HOLDS_STEPS)
        is_released = np.zeros(len(self.rows) + 1, dtype=np.bool_)
        is_released[released] = True
        stands = np.arange(len(self.rows) + 1)
        stands[-1] = -1
        stands[released] = -1
        merged = inner[~is_released[holder[holder >= 0]]]
        stands[merged] = holder[holder >= 0][~is_released[holder[holder >= 0]]]
        self._set_aside(merged, NESTED)
        self.keeper = stands[self.keeper]

    def _around_another_thread(self, generic: Ints, specific: Ints) -> Mask:
        """Tell the generic steps of a process in which a specific one of another thread starts."""
        frame = self.frame
        told = np.zeros(len(self.rows), dtype=np.bool_)
        whole = generic[self.grammars.has("all_threads")[self.rule[generic]]]
        if len(whole) and len(specific):
            rows = self.rows[specific]
            found = around(frame, frame.process, self.rows[whole], rows)
            is_other = (found >= 0) & (frame.thread[found] != frame.thread[rows])
            told[places(self.rows, found[is_other])] = True
        return told

    def _drop_duplicates(self) -> None:
        """Let a step that two threads of a process write at once count once."""
        kept = self._kept()
        kept = kept[self.grammars.has("twice")[self.rule[kept]]]
        rows = self.rows[kept]
        key, _ = numbered(
            self.frame.process[rows] * (len(self.frame.name.values) + 1)
            + self.frame.name.codes[rows]
        )
        kept, first = self._runs(kept, key, touching=False)
        self._join(kept, first)

    def _join_streams(self) -> None:
        """Let an annotation that the GPU has on several streams count once."""
        kept = self._kept()
        kept, first = self._runs(kept, self._name_key(kept), touching=True)
        self._join(kept, first)

    def _join(self, kept: Ints, first: Ints) -> None:
        again = kept != first
        self._set_aside(kept[again], DUPLICATE)
        stands = np.arange(len(self.rows) + 1)
        stands[-1] = -1
        stands[kept[again]] = first[again]
        self.keeper = stands[self.keeper]

    def _runs(self, kept: Ints, key: Ints, *, touching: bool) -> tuple[Ints, Ints]:
        """Sort by key and start; return the places and the first of the run each is in."""
        start = self.frame.start.values[self.rows[kept]]
        order = np.lexsort((-self.frame.end[self.rows[kept]], start, key))
        kept, key = kept[order], key[order]
        rows = self.rows[kept]
        first = overlapping_runs(key, self.frame.start.values[rows], self.frame.end[rows], touching)
        return kept, kept[first]

    def _name_key(self, places_: Ints) -> Ints:
        rows = self.rows[places_]
        return (
            self.frame.rank[rows] * (len(self.frame.name.values) + 1) + self.frame.name.codes[rows]
        )

    def _kept(self) -> Ints:
        return np.flatnonzero(self.keeper == np.arange(len(self.rows)))

    def _set_aside(self, places_: Ints, reason: str | int) -> None:
        """Give some annotations the role other, for a reason; -1 for none that needs words."""
        self.role[places_] = _OTHER
        code = reason if isinstance(reason, int) else self.reasons.index(reason)
        self.why[places_] = -1 if code == -1 else len(self.grammars.rules) + code

    def _numbers(self) -> tuple[Ints, Ints]:
        """Number the steps by their starts; return each annotation's, and the steps' places."""
        kept = self._kept()
        start = self.frame.start.take(self.rows[kept])
        kept = kept[np.lexsort((kept, start.values, ~start.known))]
        number = np.full(len(self.rows) + 1, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        return number[self.keeper], kept

    def _tie_sub_steps(self, step: Ints) -> None:
        """Tie each sub-step to the step around it, else to the next one on its thread."""
        frame = self.frame
        parts = np.flatnonzero(self.role == _ROLES.index(Role.SUB_STEP))
        if not len(parts):
            return
        kept = self._kept()
        number = np.full(len(frame.event_id), -1, dtype=np.int64)
        number[self.rows[kept]] = step[kept]
        found = pick(number, around(frame, frame.thread, self.rows[kept], self.rows[parts]))
        thread, start = frame.thread[self.rows], frame.start.values[self.rows]
        order = kept[np.lexsort((start[kept], thread[kept]))]
        both = np.concatenate([order, parts])
        is_part = np.concatenate([np.zeros(len(order), np.int64), np.ones(len(parts), np.int64)])
        by_time = np.lexsort((-is_part, start[both], thread[both]))
        following = np.empty(len(both), dtype=np.int64)
        following[by_time] = np.cumsum(
            is_part[by_time] == 0
        )  # steps up to it: the next one's place
        after = following[len(order) :]
        known = after < len(order)
        has_next = known.copy()
        has_next[known] = thread[order[after[known]]] == thread[parts[known]]
        has_next &= found < 0
        found[has_next] = step[order[after[has_next]]]
        step[parts] = found

    def _tie_mirrors(self, step: Ints) -> None:
        """Tie each annotation on the GPU to the step of its twin: k-th with k-th of a name."""
        mirrors = np.flatnonzero(self.on_gpu & (self.rule >= 0))
        twins = np.flatnonzero(~self.on_gpu & (step >= 0) & (self.why != self._code(DUPLICATE)))
        if not len(mirrors) or not len(twins):
            return
        start = self.frame.start.values[self.rows]
        key = self._name_key(twins)
        order = np.lexsort((start[twins], key))
        twins, key = twins[order], key[order]
        is_first = np.ones(len(twins), dtype=np.bool_)  # of a name that one step has twice
        is_first[1:] = (key[1:] != key[:-1]) | (step[twins[1:]] != step[twins[:-1]])
        twins, key = twins[is_first], key[is_first]
        mirrors, first = self._runs(mirrors, self._name_key(mirrors), touching=True)
        firsts = mirrors[mirrors == first]
        paired = pair_in_order(
            self._name_key(firsts), start[firsts], key, start[twins], self.has_one_clock
        )
        number = np.full(len(self.rows), -1, dtype=np.int64)
        number[firsts] = pick(step[twins], paired)
        step[mirrors] = number[first]

    def _code(self, reason: str) -> int:
        return len(self.grammars.rules) + self.reasons.index(reason)

    def _made(self, step: Ints, kept: Ints) -> Steps:
        names = [rule.name for rule in self.grammars.rules]
        unparsed = np.array([*(name == UNPARSED for name in names), False])
        kept_rule = self.rule[kept]
        parts = np.flatnonzero((self.role == _ROLES.index(Role.SUB_STEP)) & (step >= 0))
        # A generic step that stands for a specific one is what that is.
        stood_for = np.zeros(len(self.rows), dtype=np.bool_)
        nested = np.flatnonzero(self.why == self._code(NESTED))
        is_specific = ~self.grammars.has("generic")[self.rule[nested]]
        stood_for[self.keeper[nested[is_specific]]] = True
        of_process = self.grammars.has("all_threads")[kept_rule] & ~stood_for[kept]
        place = np.where(self.rule >= 0, self.place, -1)
        fields = self.said.fields.take(pa.array(place, pa.int64(), mask=place < 0))
        return Steps(
            frame=self.frame,
            rows=self.rows,
            on_gpu=self.on_gpu,
            role=Words(self.role.astype(np.int32), [role.value for role in _ROLES]),
            why=Words(self.why.astype(np.int32), [*names, *self.reasons]),
            rule=Words(self.rule.astype(np.int32), names),
            fields=_words(fields),
            numbers=self.said.numbers.take(pa.array(place, pa.int64(), mask=place < 0)),
            step=step,
            kept=self.rows[kept],
            is_unparsed=unparsed[kept_rule] & ~stood_for[kept],
            of_process=self.rows[kept[of_process]],
            parts=self.rows[parts],
            parts_step=step[parts],
        )


def _words(column: pa.DictionaryArray) -> Words:
    codes: Codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return Words(codes, column.dictionary.to_pylist())
