"""The paper's experiment with its published settings, as two studies with different protocols.

The default settings of every algorithm are the published ones (tests compare them with the paper), so no settings are
given here.
"""

from __future__ import annotations

from subswarm._checks import check_choice
from subswarm.datasets import names
from subswarm.study.definition import Contender, Source, Study

__all__ = ["BUILT_IN", "PAPER_ALGORITHMS", "PROPOSED", "built_in_study"]

PROPOSED = "2d-upso"
PAPER_ALGORITHMS = ("ga", "aco", "bpso", "cbpso", "erfs", "pso-42", "chbpso", PROPOSED)
"""In the order of the paper's tables."""

BUILT_IN = {
    "paper": "true labels, Gaussian naive Bayes and 5-NN on standardised features; our own claims use this protocol",
    "paper-as-published": "the protocol that the printed numbers appear to come from, for comparison with them",
}
_MODELS = {"sound": ("nb", "knn"), "published": ("normal-cdf-nb", "knn-raw")}


def built_in_study(name: str) -> Study:
    """Return "paper" or "paper-as-published": 16 data sets, 2 models, 8 algorithms, 40 runs of 6000 evaluations."""
    check_choice("study", name, BUILT_IN)
    protocol = "sound" if name == "paper" else "published"
    return Study(
        name=name,
        datasets=tuple(Source(dataset) for dataset in names()),
        models=_MODELS[protocol],
        algorithms=tuple(Contender(label, label) for label in PAPER_ALGORITHMS),
        protocol=protocol,
    )
