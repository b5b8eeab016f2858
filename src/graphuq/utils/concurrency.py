"""Threads and processes: changes of one object wait for each other, nothing else does."""

import os
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from graphuq.errors import GraphuqError

Own = TypeVar("Own")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_locks: "WeakKeyDictionary[Any, threading.RLock]" = WeakKeyDictionary()
_of_locks = threading.Lock()
_jax_ran_before_fork = False


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251
else:

    class cached_property:
        """Property that is computed once an object, by threads that never wait for each other.

        The one of Python 3.11 has one lock for all objects of a class. Two threads that compute
        two properties of different objects, each of which needs the other one, would wait for
        ever, and all others would wait for each other for nothing. From Python 3.12 on it is as
        here: two threads may compute the same value twice.
        """

        def __init__(self, compute: Callable[[Any], Any]):
            self.compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.name, self.compute(instance))


def one_at_a_time(
    method: Callable[Concatenate[Own, Arguments], Result],
) -> Callable[Concatenate[Own, Arguments], Result]:
    """Let calls of a method that changes its object wait for all other such calls on it.

    The lock is no attribute, so that objects can be copied and pickled.
    """

    @wraps(method)
    def waiting(self: Own, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with _of_locks:
            lock = _locks.setdefault(self, threading.RLock())
        with lock:
            return method(self, *args, **kwargs)

    return waiting


def require_no_fork() -> None:
    """Refuse to compute in a process that was forked from one in which JAX had run.

    The threads of JAX are missing in such a process, where it waits for ever.

    Raises
    ------
    GraphuqError
    """
    if _jax_ran_before_fork:
        raise GraphuqError(
            "this process was forked from one in which JAX had run, and JAX would wait for ever; "
            "start processes by multiprocessing.get_context('spawn') or by joblib, or fork before "
            "the first fit"
        )


def _after_fork() -> None:
    """Note whether JAX ran before the fork, and forget locks that other threads held."""
    global _of_locks, _jax_ran_before_fork
    _of_locks = threading.Lock()
    _locks.clear()
    bridge = sys.modules.get("jax._src.xla_bridge")
    started = getattr(bridge, "backends_are_initialized", None)
    _jax_ran_before_fork |= started is not None and bool(started())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
