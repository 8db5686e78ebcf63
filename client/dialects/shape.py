"""Takes members out of a provider's JSON object: there and of the right type, or absent.

Absent and null count as not there; a member of another type is a shape that the dialect does not
have. Integers are integers of at least 0, never booleans or reals. Unknown members are not looked at.
"""

from typing import TypeVar

from ..strict_json import Json

T = TypeVar("T")
Object = dict[str, Json]


class WrongShapeError(Exception):
    """A provider's event has a member of a type that its protocol does not have."""


def wrong(what: str) -> WrongShapeError:
    """Give the exception that says what is wrong with an event."""
    return WrongShapeError(what)


def maybe_text(value: Object, key: str) -> str | None:
    """Give a string, or None where it is not there."""
    found = value.get(key)
    if found is not None and not isinstance(found, str):
        raise wrong(f"{key} is no string")
    return found


def text(value: Object, key: str) -> str:
    """Give a string that has to be there."""
    return _there(maybe_text(value, key), key)


def maybe_integer(value: Object, key: str) -> int | None:
    """Give an integer of at least 0, or None where it is not there."""
    found = value.get(key)
    if found is not None and (type(found) is not int or found < 0):
        raise wrong(f"{key} is no integer of at least 0")
    return found


def integer(value: Object, key: str) -> int:
    """Give an integer that has to be there."""
    return _there(maybe_integer(value, key), key)


def maybe_object(value: Object, key: str) -> Object | None:
    """Give an object, or None where it is not there."""
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        raise wrong(f"{key} is no object")
    return found


def object_at(value: Object, *path: str) -> Object:
    """Give the object at a path of members that all have to be there."""
    for key in path:
        value = _there(maybe_object(value, key), key)
    return value


def maybe_objects(value: Object, key: str) -> list[Object] | None:
    """Give a list of objects, or None where it is not there."""
    found = value.get(key)
    if found is None:
        return None
    if not isinstance(found, list):
        raise wrong(f"{key} is no list")
    objects = [item for item in found if isinstance(item, dict)]
    if len(objects) != len(found):
        raise wrong(f"{key} holds something else than objects")
    return objects


def objects(value: Object, key: str) -> list[Object]:
    """Give a list of objects that has to be there."""
    return _there(maybe_objects(value, key), key)


def _there(found: T | None, key: str) -> T:
    if found is None:
        raise wrong(f"{key} is missing")
    return found
