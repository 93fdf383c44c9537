"""Frozen dataclasses that are cheap to define: their constructor is compiled when the first instance is created.

The standard library compiles up to seven methods for each class when a module is imported, about 1 ms per class. A
short command imports two hundred such classes and instantiates a few, so this was a third of its processor time. Here,
comparison, hash and representation are shared functions over the values of the fields. Fields, slots, `replace` and
pattern matching are those of the standard library, and type checkers see `dataclasses.dataclass` itself.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from dataclasses import dataclass as standard
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`. Classes that are not frozen, are ordered or extend another dataclass are left to
        the standard library."""

        def defined(cls):
            is_simple = options.keys() <= {"frozen", "slots", "eq"} and not any(map(is_dataclass, cls.__mro__[1:]))
            return _frozen(cls, **options) if options.get("frozen") and is_simple else standard(**options)(cls)

        return defined if cls is None else defined(cls)


def _frozen(cls: Any, frozen: bool, slots: bool = False, eq: bool = True) -> Any:
    own = set(vars(cls)) - ({"__hash__"} if cls.__hash__ is None else set())
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise the standard library derives it from the signature
    cls = standard(init=False, repr=False, eq=False, slots=slots)(cls)
    cls.__dataclass_params__.frozen = frozen  # read if another class extends this one
    methods: dict[str, Any] = {"__init__": _compiled_on_first_call(cls), "__repr__": _repr}
    if eq:
        methods |= _comparison(fields(cls))
    if slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    cls.__setattr__, cls.__delattr__ = _not_assigned, _not_deleted
    return cls


def _compiled_on_first_call(cls: Any) -> Any:
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = _constructor(cls)
        cls.__init__(self, *values, **named)

    return __init__


def _constructor(cls: Any) -> Any:
    names: dict[str, Any] = {"assign": object.__setattr__, "MISSING": MISSING}
    parameters, lines = ["self"], []
    for one in fields(cls):
        name, default, value = one.name, f"default_{one.name}", one.name
        if one.default_factory is not MISSING:
            names[default] = one.default_factory
            parameters.append(f"{name}=MISSING")
            value = f"{default}() if {name} is MISSING else {name}"
        elif one.default is not MISSING:
            names[default] = one.default
            parameters.append(f"{name}={default}")
        else:
            parameters.append(name)
        lines.append(f" assign(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names)
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return names["__init__"]


def _comparison(all_fields: tuple[Field[Any], ...]) -> dict[str, Any]:
    compared = _values_of([one.name for one in all_fields if one.compare])

    def __eq__(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(compared(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _values_of(names: list[str]) -> Any:
    """The function from an instance to the tuple of these attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _not_assigned(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _not_deleted(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
