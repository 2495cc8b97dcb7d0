"""The paper's data sets in both protocols, and your own tables."""

from subswarm.datasets.arrow import load_table
from subswarm.datasets.catalogue import PROTOCOLS, Entry, catalogue, describe, names
from subswarm.datasets.demo import DEMO_NAMES, load_demo
from subswarm.datasets.impute import impute_nearest
from subswarm.datasets.load import Dataset, is_present, load_dataset
from subswarm.datasets.open import open_table
from subswarm.datasets.openml import load_openml
from subswarm.datasets.protocol import protocol_folds, published_folds, sound_folds
from subswarm.datasets.table import Table

__all__ = [
    "DEMO_NAMES",
    "PROTOCOLS",
    "Dataset",
    "Entry",
    "Table",
    "catalogue",
    "describe",
    "impute_nearest",
    "is_present",
    "load_dataset",
    "load_demo",
    "load_openml",
    "load_table",
    "names",
    "open_table",
    "protocol_folds",
    "published_folds",
    "sound_folds",
]
