"""Judging events: the values of the channels of judgements (entries/judgements.py).

What is compared here is compared by the functions of the language, or by a quicker way to the same
result: timestamps as integers of microseconds, numbers below 2**53 as floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from tidegate.language.expressions import (
    Environment,
    Expression,
    Now,
    Variable,
    evaluate,
    leaves,
)
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import Operator
from tidegate.language.values import Value, kind_of, to_us, to_value
from tidegate.matching.arrays import F64, I64, NO_TIME
from tidegate.matching.batches import Column, EventBatch
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.judgements import (
    AHEAD,
    BACK,
    COMPARED,
    DELAY,
    Judgement,
    names_now,
)
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.subscription import Moment

_FIRST_US = to_us(datetime.min.replace(tzinfo=UTC))
_LAST_US = to_us(datetime.max.replace(tzinfo=UTC))


def judge_event(
    matrix: F64, attributes: Mapping[str, Value], moment: Moment, channels: Channels
) -> None:
    """Write the judgements of one event into the only row of its matrix."""
    if not channels.judgements:
        return
    environment = moment.environment(None)
    operands: dict[Expression, Value | None] = {}
    for judgement, channel in channels.judgements.items():
        value = attributes.get(judgement.attribute)
        if value is None:
            continue
        if judgement.operand not in operands:
            operands[judgement.operand] = evaluate(judgement.operand, environment)
        operand = operands[judgement.operand]
        if operand is not None:
            matrix[0, channel] = _judge(judgement.form, value, operand)


def _judge(form: str, value: Value, operand: Value) -> float:
    """The value of a judgement; NaN for values that it does not compare."""
    if form == COMPARED:
        if kind_of(value) is not kind_of(operand):
            return math.nan
        return float((value > operand) - (value < operand))  # type: ignore[operator]
    if form in (DELAY, AHEAD, BACK):
        if not isinstance(value, datetime) or not isinstance(operand, datetime):
            return math.nan
        return _cut(_microseconds(form, to_us(value), to_us(operand)))
    return 1.0 if satisfies(value, Operator(form), [operand]) else math.nan


def _microseconds(form: str, value_us: int, operand_us: int) -> int:
    if form == DELAY:
        return value_us - operand_us
    return _LAST_US - operand_us if form == AHEAD else operand_us - _FIRST_US


def _cut(microseconds: int) -> float:
    return float(max(-EXACT_MAX, min(microseconds, EXACT_MAX)))


def judge_batch(
    matrix: F64, batch: EventBatch, begin: int, times_us: I64, channels: Channels
) -> None:
    """Write the judgements of some events of a batch, from ``begin`` on, into their matrix."""
    operands: dict[Expression, list[Value | None] | Value | None] = {}
    for judgement, channel in channels.judgements.items():
        chunks = [
            column.slice(begin, len(matrix))
            for name, column in batch.columns
            if name == judgement.attribute
        ]
        if not chunks:
            continue
        for chunk in chunks:
            if judgement.operand == Now() and pa.types.is_timestamp(chunk.type):
                found = _times_judged(judgement.form, chunk, times_us)
            else:
                if judgement.operand not in operands:
                    operands[judgement.operand] = _operands(judgement, batch, times_us)
                found = _column_judged(judgement.form, chunk, operands[judgement.operand])
            known = ~np.isnan(found)
            matrix[known, channel] = found[known]


def _operands(
    judgement: Judgement, batch: EventBatch, times_us: I64
) -> list[Value | None] | Value | None:
    """The value of an operand for each event, or one value for all of them."""
    operand, variables = judgement.operand, batch.variables
    varies = names_now(operand) or any(
        isinstance(leaf, Variable) and variables.is_provided(leaf.name) for leaf in leaves(operand)
    )
    if not varies:
        return evaluate(operand, Environment(variables=variables.at(None)))
    times, which = np.unique(times_us, return_inverse=True)
    values: list[Value | None] = []
    for time_us in times.tolist():
        known = None if time_us == NO_TIME else time_us
        moment = Moment(known, batch.variables_at(known))
        values.append(evaluate(operand, moment.environment(None)))
    return [values[each] for each in which.tolist()]


def _times_judged(form: str, column: Column, operands_us: I64) -> F64:
    """A column of timestamps, judged by an operand that is a timestamp, NO_TIME if undefined."""
    valid = column.is_valid().to_numpy(zero_copy_only=False) & (operands_us != NO_TIME)
    values_us = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    operands_us = np.where(valid, operands_us, 0)
    if form == COMPARED:
        found = np.sign(values_us - operands_us).astype(np.float64)
    elif form in (DELAY, AHEAD, BACK):
        microseconds = {
            DELAY: values_us - operands_us,
            AHEAD: _LAST_US - operands_us,
            BACK: operands_us - _FIRST_US,
        }[form]
        found = np.clip(microseconds.astype(np.float64), -EXACT_MAX, EXACT_MAX)
    else:
        found = np.full(len(valid), np.nan)
    return np.where(valid, found, np.nan)


def _column_judged(form: str, column: Column, operands: list[Value | None] | Value | None) -> F64:
    """A column of any values, judged by one operand for each, or one for all."""
    if operands is None:
        return np.full(len(column), np.nan)
    if not isinstance(operands, list):
        operand = operands
        if isinstance(operand, datetime) and pa.types.is_timestamp(column.type):
            return _times_judged(form, column, np.full(len(column), to_us(operand)))
        is_small = isinstance(operand, (int, float)) and abs(operand) < EXACT_MAX
        is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
        if form == COMPARED and is_number and is_small and not isinstance(operand, bool):
            # a value from 2**53 on may be rounded, but not to below 2**53
            floats = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
            valid = column.is_valid().to_numpy(zero_copy_only=False) & ~np.isnan(floats)
            found = (floats > operand).astype(np.float64) - (floats < operand)
            return np.where(valid, found, np.nan)
        return _each_distinct(column, lambda value: _judge(form, value, operand))
    judged = np.full(len(column), np.nan)
    for row, each in enumerate(operands):
        value = None if each is None else to_value(column[row].as_py())
        if each is not None and value is not None:
            judged[row] = _judge(form, value, each)
    return judged


def _each_distinct(column: Column, judge: Callable[[Value], float]) -> F64:
    """A column, of which each distinct value is judged once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [to_value(each) for each in coded.dictionary.to_pylist()]
    # one NaN more, at the end, for nulls
    judged = np.array([math.nan if each is None else judge(each) for each in values] + [math.nan])
    indices = coded.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
    result: F64 = judged[indices]
    return result
