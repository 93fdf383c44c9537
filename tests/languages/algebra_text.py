"""A query's algebra as a few readable lines, for the fixture files."""

from __future__ import annotations

from fishweir.algebra.alternatives import parts
from fishweir.algebra.nodes import (
    Absence,
    Comparison,
    CreateQuery,
    ElementOutput,
    Output,
    PatternNode,
    Slot,
    TextOutput,
    VariableOutput,
)
from fishweir.algebra.preferences import Preference, Score
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput


def algebra_text(query: CreateQuery) -> str:
    lines: list[str] = []
    for part in parts(query.shape):
        lines += ["or"] if lines else []
        lines += [f"read {block.source}: {_pattern(block.pattern)}" for block in part.blocks]
        lines += [f"if {_condition(c)}" for c in part.conditions]
    lines += [f"out {_output(part)}" for part in query.shape.output]
    lines += [f"constant {c!r}" for c in query.constants]
    if query.published:
        lines.append(f"publish {query.name}")
    if query.preference:
        lines.append(f"prefer {_preference(query.preference)}")
    lines += [f"do {action.name} {' | '.join(action.arguments)}" for action in query.actions]
    schedule = query.schedule
    if schedule.start is not None or schedule.every or schedule.expire is not None:
        lines.append(f"when {schedule.start} {schedule.every} {schedule.expire}")
    return "\n".join(lines)


def _pattern(node: PatternNode) -> str:
    variables = "".join(f" ${name}" for name in node.variables)
    children = f"({', '.join(_pattern(child) for child in node.children)})" if node.children else ""
    return f"{node.step}{variables}{children}{''.join(map(_absence, node.absent))}"


def _absence(absence: Absence) -> str:
    inner = [_pattern(child) for child in absence.children] + [_condition(c) for c in absence.conditions]
    return f" without ({', '.join(inner)})"


def _condition(c: Comparison) -> str:
    right = f"{c.right.type}[{c.right.index}]" if isinstance(c.right, Slot) else f"${c.right}"
    return f"${c.left} {c.op} {right}"


def _output(part: Output) -> str:
    match part:
        case VariableOutput(name, content):
            return f"content of ${name}" if content else f"element ${name}"
        case TextOutput(text):
            return repr(text)
        case ElementOutput(tag, attributes, children):
            given = "".join(f" {name}={_output(value)}" for name, value in attributes)
            return f"<{tag}{given}>[{', '.join(_output(child) for child in children)}]"
        case PathOutput(_, _, text):
            return f"{part}{'/text()' if text else ''}"
        case ReturnOutput(variables, parts):
            return f"for each {' '.join(f'${name}' for name in variables)}: {', '.join(map(_output, parts))}"
        case ForOutput(variable, over, conditions, parts):
            where = "".join(f" if {c.at} {c.op} {c.constant!r}" for c in conditions)
            return f"(for ${variable} in {over}{where}: {', '.join(map(_output, parts))})"


def _preference(preference: Preference) -> str:
    ranked = " > ".join("/".join(names) for names in preference.ranking)
    return ", ".join(filter(None, [*map(_score, preference.scores), ranked]))


def _score(score: Score) -> str:
    c = score.condition
    inside = f"[{'/'.join(c.path)} {c.op} {c.constant!r}]" if c else ""
    return f"{'/'.join(score.pattern)}{inside} {score.utility}"
