"""What can go wrong, as one tree.

::

    SubswarmError
    ├── SettingError (ValueError)      a setting of an algorithm, budget or selector is out of range
    ├── DataError (ValueError)         the table, the target or the folds cannot be used
    ├── DatasetError (OSError)         a data file is absent, damaged or cannot be fetched
    ├── FitnessError (ValueError)      tell() was given something that is not a fitness for each mask
    ├── ScoringError (ValueError)      the scorer cannot be turned into a loss
    ├── CheckpointError (ValueError)   a checkpoint belongs to another search, or cannot be read
    ├── StoreError (OSError)           a study's result file cannot be read, written or shared
    └── MissingExtraError (ImportError)  an optional package is not installed

Every message says what came, what was wanted and what to do.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "DataError",
    "DatasetError",
    "FitnessError",
    "MissingExtraError",
    "ScoringError",
    "SettingError",
    "StoreError",
    "SubswarmError",
    "SubswarmWarning",
]


class SubswarmError(Exception):
    """The root of every error raised on purpose by this package."""


class SettingError(SubswarmError, ValueError):
    """A setting is out of range or of the wrong kind."""


class DataError(SubswarmError, ValueError):
    """The table, the target or the folds cannot be used."""


class DatasetError(SubswarmError, OSError):
    """A data file is absent, not what its checksum says, or cannot be fetched."""


class FitnessError(SubswarmError, ValueError):
    """What was told is not one finite fitness for each mask that was asked."""


class ScoringError(SubswarmError, ValueError):
    """The scorer cannot be turned into a loss that is at least zero."""


class CheckpointError(SubswarmError, ValueError):
    """A checkpoint cannot be read, or belongs to another search."""


class StoreError(SubswarmError, OSError):
    """A study's result file cannot be read or written, is in use, or belongs to another study."""


class MissingExtraError(SubswarmError, ImportError):
    """An optional package is needed and not installed."""


class SubswarmWarning(UserWarning):
    """Something went on, but not quite as asked."""
