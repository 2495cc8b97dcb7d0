"""Load tables: CSV and Parquet files, OpenML data sets, demo tables and the paper's sixteen UCI data sets."""

from subswarm.datasets._arrow import load_table
from subswarm.datasets._catalogue import PROTOCOLS, Entry, catalogue, describe, names
from subswarm.datasets._demo import DEMO_NAMES, load_demo
from subswarm.datasets._impute import impute_nearest
from subswarm.datasets._load import Dataset, is_present, load_dataset
from subswarm.datasets._open import open_table
from subswarm.datasets._openml import load_openml
from subswarm.datasets._protocol import protocol_folds, published_folds, sound_folds
from subswarm.datasets._table import Table
from subswarm.datasets._write import write_table

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
    "write_table",
]
