"""The fast engines give scikit-learn's losses on tables of every kind.

Neighbours give those of the documented rule, and linear models the same classes and, to the documented digits, the same
numbers.
"""

from __future__ import annotations

import importlib.util
import traceback
from typing import Any

import joblib
import numpy as np
from sklearn import config_context
from sklearn.base import is_regressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from subswarm.engines.base import engine_for
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.errors import SubswarmError
from subswarm.objective.objective import make_objective
from subswarm.objective.scoring import resolve_scoring

from . import linear
from .case import Case, announce, pick, short
from .rule import rule_on_fold
from .scorers import scorer_of_classes, scorer_of_numbers
from .tables import MILD, MOST_FITS, VALUES, Problem, masks_for, random_problem

__all__ = ["run"]

TORCH_SHARE = 0.04
_AVERAGED = [f"{name}_{how}" for name in ("f1", "precision", "recall", "jaccard") for how in ("macro", "weighted")]
_LABELS = ["accuracy"] * 12 + ["balanced_accuracy", "matthews_corrcoef", "f1_micro", *_AVERAGED]
_BINARY = ["f1", "precision", "recall", "jaccard"]
_FAMILIES = ("nb", "nb", "nb", "knn", "knn", "knn", "knn regression", "normal cdf")
_LINEAR = ("least squares", "linear classes", "linear classes", "logistic")
_OF_NUMBERS = ("knn regression", "least squares")


def run(rng: np.random.Generator) -> Case:
    """One table, one model, one or two batches of masks."""
    with config_context(skip_parameter_validation=True):  # the settings are valid, and checking them takes long
        return _run(rng)


def _run(rng: np.random.Generator) -> Case:
    case = Case()
    family = pick(rng, (*_FAMILIES, *_LINEAR))
    regression = family in _OF_NUMBERS
    problem = random_problem(rng, regression=regression, values=MILD if family == "logistic" else VALUES)
    estimator = _estimator(rng, family, problem)
    settings = {
        "cv": problem.cv,
        "groups": problem.groups,
        "scoring": _scoring(rng, family, problem.y),
        "random_state": int(rng.integers(100)),
        "repeats": int(rng.integers(2, 4)) if isinstance(problem.cv, int) and rng.random() < 0.2 else 1,
    }
    if family in _LINEAR and rng.random() < 0.3:
        settings["params"] = linear.weights_for(rng, estimator, len(problem.y))
    room = {"n_jobs": pick(rng, (None, 1, 2)), "max_bytes": pick(rng, (1, 1000, 100_000, 1 << 30, 1 << 30, 1 << 30))}
    words = f"{short(estimator, 200)}, {settings['scoring']}, {problem.words}, {room}, repeats={settings['repeats']}"
    announce(words)
    fast = _objective(estimator, problem, "fast", {**settings, **room})
    reference = linear.solved_tightly(estimator) if family == "logistic" else estimator
    slow = _objective(reference, problem, "estimator", settings)
    # what the engine leaves to scikit-learn has the loss of the estimator as it is
    own = slow if reference is estimator else _objective(estimator, problem, "estimator", settings)
    if fast is None or slow is None:
        return case  # what no fast engine takes, or no engine at all
    batches = [_masks(rng, fast) for _ in range(1 + int(rng.random() < 0.3))]
    engines = {"fast": fast}
    if rng.random() < TORCH_SHARE and importlib.util.find_spec("torch") is not None:
        torch = _objective(estimator, problem, "torch", {**settings, **room})
        engines |= {} if torch is None else {"torch": torch}
    for masks, compared in batches:
        _compare(case, reference, engines, slow, masks, compared, words, own=own)
        if case.findings:
            break
    if not case.findings and family in ("nb", "normal cdf", "linear classes") and rng.random() < 0.2:
        _compare_other_scorer(rng, case, family, fast, slow, masks[compared], words)
    case.compared = 1
    return case


def _compare_other_scorer(
    rng: np.random.Generator, case: Case, family: str, fast: Any, slow: Any, masks: Any, words: str
) -> None:
    """Of several scorers, the search optimises one; the mean scores by the others are scikit-learn's, too."""
    other = resolve_scoring(fast.estimator, _scoring(rng, family, fast.data.y))
    try:
        ours, theirs = fast.mean_scores(masks, other), slow.mean_scores(masks, other)
    except Exception as error:
        case.judge(error, f"mean_scores, {short(other.scorer, 200)}, {words}", anything_through=True)
        return
    for mask, one, two in zip(masks, ours, theirs, strict=True):
        if not np.isclose(one, two, rtol=1e-9, atol=1e-11, equal_nan=True):
            text = f"{one!r}, scikit-learn {two!r} | {short(other.scorer, 200)}, {words}, mask {_shown(mask)}"
            case.differs(f"{family}, another scorer", text)
            return


def _objective(estimator: Any, problem: Problem, engine: str, settings: dict[str, Any]) -> Any:
    """The objective, or None where the table, the folds or the engine are refused."""
    try:
        return make_objective(estimator, problem.X, problem.y, engine=engine, **settings)
    except SubswarmError:
        return None


def _masks(rng: np.random.Generator, objective: Any) -> tuple[Any, Any]:
    """A batch, and which of its masks scikit-learn is asked about; large batches take other ways in the engines."""
    n, fits = objective.n_features, max(1, MOST_FITS // len(objective.folds))
    few = int(min(fits, rng.integers(1, 5)))
    cheap = objective.scoring.name in ("accuracy", "r2")  # other scorers are asked fold by fold, in Python
    count = few if rng.random() < 0.7 else few + int(rng.integers(1, 60 if cheap else 6))
    masks = masks_for(rng, n, count)
    if count > 2 and rng.random() < 0.2:
        masks[-1] = masks[0]
    return masks, rng.permutation(count)[:few]


def _compare(
    case: Case,
    estimator: Any,
    engines: dict[str, Any],
    slow: Any,
    masks: Any,
    compared: Any,
    words: str,
    *,
    own: Any,
) -> None:
    expected, expected_error = _outcome(slow, masks[compared])
    for name, objective in engines.items():
        found, has_raised = _outcome(objective, masks)
        if isinstance(expected, BaseException) or isinstance(found, BaseException):
            if type(expected) is not type(found) and len(compared) == len(masks):
                raised = found if isinstance(found, BaseException) else expected
                text = f"{name} gave {short(found, 150)}, scikit-learn {short(expected, 150)}"
                cause = f"{objective.engine}, {type(raised).__name__} at {_raised_at(raised)}"
                case.differs(cause, f"{text} | {words}, masks {_shown(masks)}")
            continue
        if (found == objective.scoring.worst).all():
            # every subset failed in the first repeat, perhaps with the error of the estimator: that depends on how many
            # were asked at once, so scikit-learn is asked for the same batch
            again, raises_too = _outcome(slow.fresh(), masks)
            if has_raised and (expected_error or raises_too):
                continue  # both searches end with this error, and neither has a loss, not even on the other repeats
            expected = again[compared]
        rows = found[compared]
        if _is_neighbors(estimator):
            _compare_neighbors(case, name, estimator, objective, masks[compared], rows, expected, words)
            continue
        for mask, ours, theirs in zip(masks[compared], rows, expected, strict=True):
            wrong = np.flatnonzero(~_agree(objective, ours, theirs))
            if _is_linear(estimator):
                wrong = [f for f in wrong if linear.difference(estimator, objective.data, mask, f, ours[f], theirs[f])]
            if len(wrong) and own is not slow:
                alone, _ = _outcome(own, mask[None])
                if not isinstance(alone, BaseException):
                    wrong = np.intersect1d(wrong, np.flatnonzero(~_agree(objective, ours, alone[0])))
            if len(wrong):
                fold = int(wrong[0])
                text = f"fold {fold} {ours[fold]!r}, scikit-learn {theirs[fold]!r}"
                cause = f"{objective.engine}, not scikit-learn's loss"
                case.differs(cause, f"{text} | {words}, mask {_shown(mask)}, batch of {len(masks)}")
                break


def _outcome(objective: Any, masks: Any) -> tuple[Any, bool]:
    """The losses of masks, or the exception, and whether the estimator's own error came through."""
    with joblib.parallel_config(backend="threading"):
        try:
            return objective.fold_losses(masks), False
        except Exception as error:
            if any(error is objective._engines[number].error for number in range(objective.n_partitions)):
                # the estimator's own error comes through where no subset has worked yet; which ones were asked before
                # is not the same for both engines, so here it counts as what it would be later: the worst loss
                return np.full((len(masks), len(objective.folds)), objective.scoring.worst), True
            return error, False


def _compare_neighbors(
    case: Case, name: str, estimator: Any, objective: Any, masks: Any, rows: Any, expected: Any, words: str
) -> None:
    """Where the engine answers itself, the rule holds exactly; where nothing ties, scikit-learn's loss is the same."""
    data = objective._data
    by_engine = _answered_by_engine(estimator, data, masks, "torch" if name == "torch" else "fast")
    for place, mask in enumerate(masks):
        ours, theirs = rows[place], expected[place]
        if not by_engine[place].all():
            wrong = np.flatnonzero(~_agree(objective, ours, theirs) & ~by_engine[place])
            if len(wrong):
                text = f"fold {wrong[0]} {ours[wrong[0]]!r}, not {theirs[wrong[0]]!r}"
                case.differs(
                    f"{name} knn, left to scikit-learn and yet not its loss", f"{text} | {words}, mask {_shown(mask)}"
                )
                return
        for f, fold in enumerate(data.folds):
            if not by_engine[place][f]:
                continue
            ruling = rule_on_fold(estimator, data, mask, fold)
            wanted = _loss(data, ruling.score)
            if not _agree(objective, ours[f], wanted):
                again = rule_on_fold(estimator, data, mask, fold, scaler_sees_all=True)
                wanted_too = _loss(data, again.score)
                if not _agree(objective, ours[f], wanted_too):
                    text = f"fold {f} {ours[f]!r}, the rule says {wanted!r}, scikit-learn {theirs[f]!r}"
                    cause = f"{name} knn, not the rule"
                    case.differs(cause, f"{text} | {words}, mask {_shown(mask)}, batch of {len(masks)}")
                    return
            if is_regressor(estimator) and _differ_by_rounding(data.y[fold.test], ruling.answers, ours[f], theirs[f]):
                continue
            if abs(ours[f] - theirs[f]) <= ruling.room:
                continue
            if not _agree(objective, ours[f], theirs[f]) and not ruling.open_rows.any():
                text = f"fold {f} {ours[f]!r}, scikit-learn {theirs[f]!r}, and no test row ties"
                cause = f"{name} knn, the rule but not scikit-learn's loss"
                case.differs(cause, f"{text} | {words}, mask {_shown(mask)}, batch of {len(masks)}")
                return
    answered = by_engine.all(axis=1)
    if answered.any() and data.n_partitions == 1:
        _compare_predictions(case, name, estimator, data, masks[answered][0], words)


def _differ_by_rounding(truth: Any, answers: Any, ours: float, theirs: float) -> bool:
    """Whether two scores differ by no more than rounding of the predictions can move them."""
    off = 1e-12 * float(np.abs(np.concatenate([truth, answers])).max())
    return bool(abs(ours - theirs) <= linear.room_of_score(truth, answers, off))


def _compare_predictions(case: Case, name: str, estimator: Any, data: Any, mask: Any, words: str) -> None:
    """Row by row, where a score could hide that two wrong rows cancel."""
    engine: Any = engine_for(estimator, data, engine="fast")
    ours = engine.predictions(mask)
    for sees_all in (False, True):
        rulings = [rule_on_fold(estimator, data, mask, fold, scaler_sees_all=sees_all) for fold in data.folds]
        answers = np.concatenate([ruling.answers for ruling in rulings])
        if np.array_equal(ours, answers) or (
            is_regressor(estimator) and np.allclose(ours, answers, rtol=1e-12, atol=0)
        ):
            return
    rows = np.flatnonzero(ours != answers)
    text = f"test row {rows[0]} predicted as {ours[rows[0]]!r}, the rule says {answers[rows[0]]!r}"
    case.differs(f"{name} knn, predictions that are not the rule's", f"{text} | {words}, mask {_shown(mask)}")


def _answered_by_engine(estimator: Any, data: Any, masks: Any, engine: str) -> Any:
    """For each mask and fold whether the engine answers itself; it leaves whole partitions to scikit-learn."""
    answered = np.ones((len(masks), data.n_folds), dtype=bool)
    for number in range(data.n_partitions):
        kind: Any = engine_for(estimator, data.partition(number), engine=engine)
        with np.errstate(all="ignore"):
            finite = np.isfinite(kind._scores(np.ascontiguousarray(masks))).all(axis=1)
        answered[:, number * data.folds_each : (number + 1) * data.folds_each] &= finite[:, None]
    return answered


def _agree(objective: Any, ours: Any, theirs: Any) -> Any:
    """Whether losses are equal: the share of right answers exactly, other metrics up to the rounding of their sums."""
    if objective.scoring.name == "accuracy":
        return np.equal(ours, theirs)
    return np.isclose(ours, theirs, rtol=1e-12, atol=1e-12, equal_nan=True)


def _raised_at(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "subswarm" in frame.filename]
    return f"{frames[-1].filename.split('/')[-1]} {frames[-1].name}" if frames else "scikit-learn"


def _loss(data: Any, score: float) -> float:
    """The loss of a score; NaN where it is none."""
    return float(data.scoring.loss(np.array([score]))[0])


def _is_neighbors(estimator: Any) -> bool:
    return isinstance(_last(estimator), KNeighborsClassifier | KNeighborsRegressor)


def _is_linear(estimator: Any) -> bool:
    model = _last(estimator)
    if isinstance(model, NearestCentroid):
        return True
    return type(model).__module__.startswith(("sklearn.linear_model", "sklearn.discriminant_analysis"))


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _estimator(rng: np.random.Generator, family: str, problem: Problem) -> Any:
    model = _linear_model(rng, family, problem) or _model(rng, family, len(problem.y), len(np.unique(problem.y)))
    scaler = _scaler(rng)
    return model if scaler is None else make_pipeline(scaler, model)


def _linear_model(rng: np.random.Generator, family: str, problem: Problem) -> Any:
    if family == "least squares":
        return linear.least_squares(rng)
    if family == "linear classes":
        return linear.linear_classifier(rng, problem.y)
    return linear.logistic(rng) if family == "logistic" else None


def _model(rng: np.random.Generator, family: str, N: int, n_classes: int) -> Any:
    if family == "normal cdf":
        return NormalCDFBayes()
    if family == "nb":
        priors = rng.dirichlet(np.ones(n_classes)) if rng.random() < 0.1 else None
        return GaussianNB(var_smoothing=pick(rng, (1e-9, 1e-9, 1e-9, 0.0, 1e-3, 1.0)), priors=priors)
    k = int(rng.integers(1, min(N, 7) + 1)) if rng.random() < 0.8 else int(rng.integers(1, N))
    distance = pick(
        rng,
        (
            {},
            {},
            {},
            {"metric": "euclidean"},
            {"metric": "manhattan"},
            {"p": 1},
            {"algorithm": "brute"},
            {"algorithm": "ball_tree"},
            {"algorithm": "kd_tree", "leaf_size": 2},
        ),
    )
    if family == "knn regression":
        return KNeighborsRegressor(k, weights=pick(rng, ("uniform", "uniform", "distance")), **distance)
    return KNeighborsClassifier(k, weights=pick(rng, ("uniform", "uniform", "distance")), **distance)


def _scaler(rng: np.random.Generator) -> Any:
    yes = bool(rng.random() < 0.5)
    return pick(
        rng,
        (
            None,
            None,
            None,
            StandardScaler(),
            StandardScaler(),
            StandardScaler(with_mean=yes, with_std=not yes),
            MinMaxScaler(),
            MinMaxScaler(feature_range=pick(rng, ((-1, 1), (0, 1e-3), (5, 1e6))), clip=bool(rng.random() < 0.2)),
            RobustScaler(),
            RobustScaler(with_centering=yes, quantile_range=(10.0, 80.0), unit_variance=not yes),
        ),
    )


def _scoring(rng: np.random.Generator, family: str, y: Any) -> Any:
    if family in _OF_NUMBERS:
        return None if rng.random() < 0.1 else scorer_of_numbers(rng)
    names = [*_LABELS, None, *(_BINARY if set(np.unique(y).tolist()) == {0, 1} else [])]
    if rng.random() < 0.5:
        return pick(rng, names)
    return scorer_of_classes(rng, y, shares=family != "normal cdf" and bool(rng.random() < 0.5))


def _shown(masks: Any) -> str:
    return " ".join("".join("01"[int(bit)] for bit in mask) for mask in np.atleast_2d(masks)[:4])
