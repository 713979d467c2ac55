"""Classes by name: ``{"module": …, "name": …}`` in a recording, and the class again in another process.

A recording can be written by others, so a name never leads to anything but a class of the kind that is asked for, and
nothing is called here. Classes of values are looked for only in modules that the program has loaded.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["class_named", "name_of"]


def name_of(cls: type) -> dict[str, str] | None:
    """The name under which :func:`class_named` finds this class again; None when it can't (a local class, a generic)."""
    module, name = cls.__module__, cls.__qualname__
    found = class_named({"module": module, "name": name}, object)
    return {"module": module, "name": name} if found is cls else None


def class_named(name: Any, base: type, *, load: bool = False) -> Any:
    """The subclass of ``base`` of that name, or None.

    Args:
        name: ``{"module": …, "name": …}``; anything else gives None.
        load: import a module that is not loaded yet. Programs (``__main__`` of a package) never are.
    """
    if not isinstance(name, dict):
        return None
    module, qualified = name.get("module"), name.get("name")
    if not (isinstance(module, str) and isinstance(qualified, str)):
        return None
    thing: Any = sys.modules.get(module)
    if thing is None and load and not any(part.startswith("__") for part in module.split(".")):
        try:
            thing = importlib.import_module(module)
        except Exception:
            return None
    for part in qualified.split("."):
        thing = vars(thing).get(part) if thing is not None and hasattr(thing, "__dict__") else None
    return thing if isinstance(thing, type) and issubclass(thing, base) else None
