"""Digests of Python values: equal values have equal digests, different values different ones.

A digest depends only on the content of a value, not on its address in memory, the process or ``PYTHONHASHSEED``. Two
processes that build the same estimator get the same digest, so a search can check that a checkpoint belongs to it.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Iterable
from copyreg import dispatch_table
from typing import Any

import numpy as np

from subswarm._types import AnyArray

__all__ = ["digest"]

_DEEPEST = 100
"""Levels of nesting that are read; below that, only types count."""

_PLAIN_DTYPES = "biufcmMSU"
"""Kinds of dtype whose bytes define the values."""


def digest(value: object) -> str:
    """Return the SHA-256 digest of a value, its type and its content, as hexadecimal text.

    - Estimators (anything with ``get_params``) count by their type and parameters, not by what they have fitted.
    - Functions count by module, qualified name, code, defaults and the variables they close over. The global variables
      and the other functions that they use count by name only.
    - Sets and dictionaries count without their order.
    - Other objects count by type and state, as pickle would save them. One without a readable state (a lock, an open
      file) counts by its type only.

    Examples
    --------
    >>> digest({"a": 1, "b": {2, 3}}) == digest({"b": {3, 2}, "a": 1})
    True
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 2)
    False
    """
    return _Digester().of(value).hex()


def _hashed(kind: str, *parts: bytes) -> bytes:
    """Return one digest of a kind and its parts. Each part is preceded by its length, so different lists differ."""
    total = hashlib.sha256()
    for part in (kind.encode(), *parts):
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.digest()


def _name(kind: object) -> bytes:
    """Return the module and qualified name of a class or function."""
    module, name = getattr(kind, "__module__", None), getattr(kind, "__qualname__", None)
    return f"{module}.{name or getattr(kind, '__name__', '')}".encode()


class _Digester:
    """Digests one value. It remembers the objects it has seen, so shared parts are read once and cycles end."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._done: dict[
            int, tuple[object, bytes]
        ] = {}  # keeps the objects alive, so that no other object gets their id
        self._highest_cycle = 0

    def of(self, value: object) -> bytes:
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str):
            return _hashed(kind.__name__, repr(value).encode("utf-8", "surrogatepass"))
        if type(value) is bytes:
            return _hashed("bytes", value)
        if isinstance(value, type | types.ModuleType):
            return _hashed("name", _name(value) if isinstance(value, type) else value.__name__.encode())
        key, depth = id(value), len(self._open)
        if key in self._done:
            return self._done[key][1]
        if key in self._open:
            self._highest_cycle = min(self._highest_cycle, self._open[key])
            return _hashed("cycle", str(depth - self._open[key]).encode())
        if depth >= _DEEPEST:
            return _hashed("deep", _name(kind))
        before, self._highest_cycle, self._open[key] = self._highest_cycle, depth, depth
        try:
            found = self._of_object(value)
        finally:
            del self._open[key]
        if self._highest_cycle >= depth:  # a reference to an object above this one has another meaning elsewhere
            self._done[key] = (value, found)
        self._highest_cycle = min(before, self._highest_cycle)
        return found

    def _of_object(self, value: object) -> bytes:
        """Return the digest of an object that contains others."""
        if isinstance(value, np.ndarray | np.generic):
            return self._of_array(value)
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if isinstance(value, types.CodeType):
            return self._of_code(value)
        if isinstance(value, types.MethodType):
            return self._all("method", value.__func__, value.__self__)
        if isinstance(value, types.BuiltinFunctionType | np.ufunc):
            return _hashed("builtin", _name(value), self.of(getattr(value, "__self__", None)))
        if isinstance(value, functools.partial):
            return self._all("partial", type(value), value.func, value.args, value.keywords)
        if type(value) is list or type(value) is tuple:
            return self._all(type(value).__name__, *value)
        if type(value) is set or type(value) is frozenset:
            return self._unordered(type(value).__name__, (self.of(item) for item in value))
        if type(value) is dict or type(value) is types.MappingProxyType:
            return self._of_items("dict", value.items())
        return self._of_instance(value)

    def _all(self, kind: str, *values: object) -> bytes:
        return _hashed(kind, *(self.of(value) for value in values))

    def _unordered(self, kind: str, digests: Iterable[bytes]) -> bytes:
        return _hashed(kind, *sorted(digests))

    def _of_items(self, kind: str, items: Iterable[tuple[object, object]]) -> bytes:
        return self._unordered(kind, (self._all("item", key, item) for key, item in items))

    def _of_array(self, value: object) -> bytes:
        array: AnyArray = np.asarray(value)
        facts = [_name(type(value)), array.dtype.str.encode(), str(array.shape).encode()]
        if array.dtype.names is not None:
            return _hashed("fields", *facts, *(self._all("field", name, array[name]) for name in array.dtype.names))
        if isinstance(value, np.ma.MaskedArray):
            facts.append(self.of(np.ma.getmaskarray(value)))
        if array.dtype.kind in _PLAIN_DTYPES:
            return _hashed("array", *facts, np.ascontiguousarray(array).tobytes())
        return _hashed("array", *facts, *(self.of(item) for item in array.ravel().tolist()))

    def _of_function(self, function: types.FunctionType) -> bytes:
        return _hashed(
            "function",
            _name(function),
            self.of(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            *(self._of_cell(cell) for cell in function.__closure__ or ()),
        )

    def _of_cell(self, cell: types.CellType) -> bytes:
        try:
            return self.of(cell.cell_contents)
        except ValueError:  # the variable has no value yet
            return _hashed("empty cell")

    def _of_code(self, code: types.CodeType) -> bytes:
        """Return the digest of compiled code, without its file and line numbers."""
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return self._all("code", code.co_code, code.co_consts, counts, names)

    def _of_instance(self, value: object) -> bytes:
        kind = type(value)
        library = kind.__module__.split(".")[0]
        for state_of in (_STATES.get(library), _estimator_state, _random_state, _compiled_state, _pickled_state):
            state = None if state_of is None else _try_state(state_of, value)
            if state is not None:
                return _hashed("object", _name(kind), self.of(state))
        return _hashed("object", _name(kind), self.of(getattr(value, "__dict__", None)))


def _try_state(state_of: Callable[[object], object], value: object) -> object:
    """Return ``state_of(value)``, or None if the value's own code fails."""
    try:
        return state_of(value)
    except Exception:
        return None


def _estimator_state(value: object) -> object:
    """Return the parameters of an estimator and what else scikit-learn's ``clone`` copies."""
    if not hasattr(value, "get_params"):
        return None
    cloned_by = getattr(type(value), "__sklearn_clone__", None)
    if cloned_by is not None and not cloned_by.__module__.startswith("sklearn.base"):
        return _fitted_state(value)  # a clone of this one keeps its fitted state
    also_cloned = [getattr(value, name, None) for name in ("_metadata_request", "_sklearn_output_config")]
    return value.get_params(deep=False), also_cloned


def _fitted_state(value: object) -> object:
    """Return all attributes of an estimator, and of the estimators among them."""
    if isinstance(value, list | tuple):
        return [_fitted_state(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.shape, [_fitted_state(item) for item in value.ravel()]
    if not hasattr(value, "get_params"):
        return value
    return type(value), {name: _fitted_state(item) for name, item in vars(value).items()}


def _random_state(value: object) -> object:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if value is getattr(np.random.rand, "__self__", None):  # the global one, which means "any randomness"
        return "global"
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    return value.state if isinstance(value, np.random.BitGenerator | np.random.SeedSequence) else None


def _compiled_state(value: object) -> object:
    """Return the Python function behind a numba function, whose other attributes change as it is compiled."""
    function = getattr(value, "py_func", None)
    return None if function is None else (function, getattr(value, "targetoptions", None))


def _pandas_state(value: Any) -> object:
    if hasattr(value, "columns"):
        return [value.columns, value.index, [value.iloc[:, place] for place in range(value.shape[1])]]
    if not hasattr(value, "dtype"):
        return None
    dtype = value.dtype
    categories = (dtype.categories, dtype.ordered) if hasattr(dtype, "categories") else None
    names = list(value.names) if hasattr(value, "names") else value.name
    index = value.index if hasattr(value, "index") else None
    return [names, str(dtype), categories, index, np.asarray(value)]


def _polars_state(value: Any) -> object:
    if hasattr(value, "get_columns"):
        return value.get_columns()
    return [value.name, str(value.dtype), value.to_list()] if hasattr(value, "to_list") else None


def _torch_state(value: object) -> object:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else None


def _pickled_state(value: object) -> object:
    """Return what pickle would save of the value."""
    reduced = dispatch_table[type(value)](value) if type(value) in dispatch_table else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return reduced
    made_by, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    return made_by, arguments, state, list(items or ()), list(pairs or ())


def _scipy_state(value: Any) -> object:
    if not (hasattr(value, "tocsr") and hasattr(value, "shape")):
        return None
    rows = value.tocsr(copy=True)
    rows.sum_duplicates()
    return [rows.shape, rows.data, rows.indices, rows.indptr]


_STATES: dict[str, Callable[[Any], object]] = {
    "pandas": _pandas_state,
    "polars": _polars_state,
    "scipy": _scipy_state,
    "torch": _torch_state,
}
"""How to read the objects of optional libraries."""
