"""values.py - Python values as JSON and back, by the annotations of functions."""
from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import inspect
import math
import types
import typing
from typing import Any, Callable, Union


def encode(value: Any) -> Any:
    """JSON of a value: dataclasses are objects, tuples and sets are lists."""
    kind = type(value)
    if value is None or kind is int or kind is bool or (kind is str and value.isascii()):
        return value
    if kind is dict:
        return {encode(str(key)): encode(one) for key, one in value.items()}
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected what JSON can hold, found %r" % value)
    if isinstance(value, str) and not value.isascii():
        value.encode()  # half of a character is no text
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {encode(str(key)): encode(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(encode(one) for one in value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    raise TypeError("expected what JSON can hold or a dataclass, found %s" % type(value).__name__)


def decode(value: Any, hint: Any) -> Any:
    """The value as its annotation has it; what has none stays JSON."""
    if hint is Any or hint is object:
        return value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        known = {field.name for field in dataclasses.fields(hint)}
        return hint(**{name: decode(one, hints.get(name, Any)) for name, one in value.items() if name in known})
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if hint is datetime.datetime and isinstance(value, str):
        return datetime.datetime.fromisoformat(value)
    if origin in (list, set, frozenset, tuple) and isinstance(value, list):
        inner = args[0] if args else Any
        return origin(decode(one, inner) for one in value)
    if origin is dict and isinstance(value, dict):
        inner = args[1] if len(args) > 1 else Any
        return value if inner is Any or inner is object else {key: decode(one, inner) for key, one in value.items()}
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        for one in args:
            if one is not type(None) and fits(value, one):
                return decode(value, one)
    return value


def fits(value: Any, hint: Any) -> bool:
    """Is the JSON value one of the annotation's kind? What is not known fits."""
    if type(value) is hint:
        return True
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in args)
    if hint is None or hint is type(None):
        return value is None
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str)
    if hint in (list, tuple, set) or origin in (list, tuple, set, frozenset):
        return isinstance(value, list)
    if hint is dict or origin is dict or (dataclasses.is_dataclass(hint) and isinstance(hint, type)):
        return isinstance(value, dict)
    return True


signature = functools.lru_cache(None)(inspect.signature)


@functools.lru_cache(None)
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:
        return {}


def returns(function: Callable[..., Any]) -> Any:
    return hints_of(function).get("return", Any)


def bind(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, from an object. ValueError names the member that does not fit."""
    if not isinstance(given, dict):
        raise ValueError("expected an object, found %s" % type(given).__name__)
    parameters, hints = signature(function).parameters, hints_of(function)
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    for name in given:
        if name not in parameters and not takes_any:
            raise ValueError("unknown member '%s'; expected %s" % (name, ", ".join(parameters) or "none"))
    for name, one in parameters.items():
        if one.default is inspect.Parameter.empty and name not in given and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise ValueError("'%s' is missing" % name)
        if name in given and not fits(given[name], hints.get(name, Any)):
            raise ValueError("'%s': expected %s, found %r" % (name, getattr(hints[name], "__name__", hints[name]), given[name]))
    return {name: decode(value, hints.get(name, Any)) for name, value in given.items()}
