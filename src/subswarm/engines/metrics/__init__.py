"""scikit-learn's metrics for all subsets of a batch at once, and its own scorers on predictions that are known.

`batch_metric` recognises a scorer and returns a `BatchMetric`, or None for a scorer that it does not know.
"""

from subswarm.engines.metrics.base import LABEL_SCORERS as LABEL_SCORERS
from subswarm.engines.metrics.base import BatchMetric as BatchMetric
from subswarm.engines.metrics.base import FixedPredictions as FixedPredictions
from subswarm.engines.metrics.base import FixedValues as FixedValues
from subswarm.engines.metrics.scorers import batch_metric as batch_metric
from subswarm.engines.metrics.scorers import needed_predictions as needed_predictions
