"""The paper's data sets in both protocols, and your own tables."""

from subswarm.datasets.catalogue import PROTOCOLS, Entry, catalogue, describe, names
from subswarm.datasets.load import Dataset, is_present, load_dataset
from subswarm.datasets.protocol import protocol_folds, published_folds, sound_folds

__all__ = [
    "PROTOCOLS",
    "Dataset",
    "Entry",
    "catalogue",
    "describe",
    "is_present",
    "load_dataset",
    "names",
    "protocol_folds",
    "published_folds",
    "sound_folds",
]
