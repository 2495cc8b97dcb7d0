"""What a case is, and what it may end with."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from subswarm.errors import SubswarmError

__all__ = ["KINDS", "Case", "UserError", "announce", "pick", "rng_of", "short"]

KINDS = ("exactness", "inputs", "files")
_NUMBERED = (*KINDS, "selftest")


class UserError(Exception):
    """Raised by the hostile callables and estimators of the harness: a user's own error may always come through."""


@dataclass(eq=False)
class Case:
    """What one case did: how many tables it compared, what was wrong, and which package it lacked."""

    compared: int = 0
    lacks: str | None = None
    findings: list[tuple[str, str]] = field(default_factory=list)

    def differs(self, cause: str, details: str) -> None:
        self.findings.append(("difference", f"{cause}: {details}"))

    def judge(
        self,
        error: BaseException,
        description: str,
        *,
        plain: Sequence[str] = (),
        through: Sequence[str] = (),
        anything_through: bool = False,
    ) -> None:
        """Note an error that is neither ours nor the user's.

        ``plain`` names files that may raise a ValueError or TypeError themselves, ``through`` files through which one
        may come (with ``anything_through``, an error of any type: the estimator or the scorer was hostile).
        """
        wrong = _what_is_wrong_with(error, plain, through, anything_through)
        if wrong is not None:
            self.findings.append(("exception", f"{wrong} | {description}"))


def rng_of(what: str, seed: int, number: int) -> np.random.Generator:
    """The randomness of one case, which depends on nothing else."""
    return np.random.default_rng([_NUMBERED.index(what), seed, number])


def announce(words: str) -> None:
    """Say what a case is about to do, where it is read if the process dies of it."""
    os.write(2, f"about: {words}\n".encode(errors="replace"))


def pick(rng: np.random.Generator, choices: Sequence[Any]) -> Any:
    """One of the choices, as it is (``rng.choice`` would make an array of them)."""
    return choices[int(rng.integers(len(choices)))]


def short(value: Any, most: int = 90) -> str:
    """A value in few characters, on one line, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except BaseException as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= most else f"{text[:most]}..."


def _what_is_wrong_with(
    error: BaseException, plain: Sequence[str], through: Sequence[str], anything_through: bool
) -> str | None:
    if isinstance(error, UserError):
        return None
    if isinstance(error, SubswarmError):
        return None if str(error).strip() else f"{type(error).__name__} without a message"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/fuzz/" not in frame.filename.replace("\\", "/")]
    if isinstance(error, TypeError) and not inside:
        return None  # a wrong call signature: nothing of ours was entered
    if isinstance(error, NotFittedError | InvalidParameterError) and str(error).strip():
        return None  # scikit-learn's own sentences
    passed = [frame.filename.replace("\\", "/") for frame in inside]
    is_plain = isinstance(error, ValueError | TypeError) and bool(str(error).strip())
    if is_plain and passed and passed[-1].endswith(tuple(plain)):
        return None
    if (is_plain or anything_through) and any(name.endswith(tuple(through)) for name in passed):
        return None
    ours = [frame for frame in inside if "/subswarm/" in frame.filename.replace("\\", "/")]
    if not ours and passed and passed[-1].endswith("sklearn/base.py"):
        return None  # an inherited method, such as set_params, of a selector whose estimator is none
    where = f"{_place(ours[-1])}" if ours else "outside subswarm"
    raised = "" if not inside or inside[-1] is (ours[-1] if ours else None) else f" (raised in {_place(inside[-1])})"
    return f"{type(error).__name__} at {where}{raised}: {short(str(error), 120)}"


def _place(frame: traceback.FrameSummary) -> str:
    parts = frame.filename.replace("\\", "/").split("/")
    return f"{'/'.join(parts[-2:])}:{frame.lineno} {frame.name}"
