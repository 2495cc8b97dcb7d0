"""Errors and warnings of this package.

::

    SubswarmError
    ├── SettingError (ValueError)      a setting of an algorithm, budget or selector is out of range
    ├── DataError (ValueError)         the table, the target or the folds cannot be used
    │   ├── DataTypeError (TypeError)  the table has entries that are not numbers, such as lists
    │   └── TableError (OSError)       a table file cannot be used as it is; lists all problems
    ├── DatasetError (OSError)         a data file is missing, damaged or cannot be downloaded
    ├── FitnessError (ValueError)      tell() got something other than one fitness for each mask
    ├── ScoringError (ValueError)      the scorer cannot be used
    ├── CheckpointError (ValueError)   a checkpoint belongs to another search, or cannot be read
    │   └── DamagedCheckpointError     a checkpoint has content that no search writes
    ├── StoreError (OSError)           a study's result file cannot be read, written or shared
    └── MissingExtraError (ImportError)  an optional package is not installed

Each message says what was given, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = [
    "CheckpointError",
    "DamagedCheckpointError",
    "DataError",
    "DataTypeError",
    "DatasetError",
    "FitnessError",
    "MissingExtraError",
    "ScoringError",
    "SettingError",
    "StoreError",
    "SubswarmError",
    "SubswarmWarning",
    "TableError",
]


class SubswarmError(Exception):
    """Base class of all errors that this package raises."""


class SettingError(SubswarmError, ValueError):
    """A setting is out of range or of the wrong type."""


class DataError(SubswarmError, ValueError):
    """The table, the target or the folds cannot be used."""


class DataTypeError(DataError, TypeError):
    """The table has entries of a type that cannot be converted to numbers."""


class DatasetError(SubswarmError, OSError):
    """A data file is missing, does not match its checksum, or cannot be downloaded."""


class TableError(DataError, DatasetError):
    """A table file has problems; all of them are listed, with the arguments of `load_table` that solve them.

    Attributes
    ----------
    problems : tuple of str
        One sentence for each problem.
    remedies : dict
        Arguments of `load_table` that solve all problems; empty if there are none.
    """

    def __init__(self, name: str, problems: Sequence[str], remedies: Mapping[str, object]) -> None:
        self.name, self.problems, self.remedies = name, tuple(problems), dict(remedies)
        listed = problems[0]
        if len(problems) > 1:
            listed = f"{name} has {len(problems)} problems. " + " ".join(
                f"({number}) {problem}" for number, problem in enumerate(problems, 1)
            )
            if remedies:
                arguments = ", ".join(f"{argument}={value!r}" for argument, value in remedies.items())
                listed += f" These arguments solve them: {arguments}."
        super().__init__(listed)

    def __reduce__(self) -> tuple[type[TableError], tuple[str, tuple[str, ...], dict[str, object]]]:
        return type(self), (self.name, self.problems, self.remedies)


class FitnessError(SubswarmError, ValueError):
    """The values told are not one finite fitness for each mask that was asked."""


class ScoringError(SubswarmError, ValueError):
    """The scorer is unknown, does not suit the estimator, or gives no finite number."""


class CheckpointError(SubswarmError, ValueError):
    """A checkpoint cannot be read, or belongs to another search."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint has content that no search writes; ``reason`` describes it."""

    def __init__(self, reason: str, file: object = "the checkpoint") -> None:
        super().__init__(f"{file} is damaged ({reason}); delete it to start again.")
        self.reason = reason

    def named(self, file: object) -> DamagedCheckpointError:
        """Return the same error for the given file."""
        return DamagedCheckpointError(self.reason, file)


class StoreError(SubswarmError, OSError):
    """A study's result file cannot be read or written, is in use, or belongs to another study."""


class MissingExtraError(SubswarmError, ImportError):
    """An optional package is needed but not installed."""


class SubswarmWarning(UserWarning):
    """The call succeeded, but not exactly as requested."""
