"""A study on a real Dask cluster: a scheduler and two worker processes, one of which is killed during the study."""

from __future__ import annotations

import pytest

from clusters import cluster, wait_for_two_workers
from limits import SECONDS
from subswarm.errors import SettingError
from subswarm.study import Contender, Source, Store, Study, run_study

pytest.importorskip("distributed", reason="a Dask cluster needs the extra 'dask'")

pytestmark = pytest.mark.slow

__all__ = ["cluster"]

STUDY = Study(
    name="small",
    datasets=(Source("wine"),),
    models=("nb",),
    algorithms=(Contender("random", "random"), Contender("2d-upso", "2d-upso")),
    runs=10,
    evaluations=3000,
    folds=10,
)


def test_a_study_survives_a_killed_worker_with_the_same_content(cluster, tmp_path):
    address, workers = cluster
    wait_for_two_workers(address)
    done = []

    def kill_one_on_the_way(progress):
        done.append(progress.done)
        if progress.done == 3:
            workers[0].kill()

    summary = run_study(STUDY, tmp_path / "dask.db", backend="dask", scheduler=address, progress=kill_one_on_the_way)
    assert (summary.ran, summary.failed) == (20, 0)
    assert workers[0].wait(timeout=SECONDS) != 0
    assert workers[1].poll() is None
    assert done == list(range(21))
    run_study(STUDY, tmp_path / "local.db")
    with Store.reading(tmp_path / "dask.db") as ours, Store.reading(tmp_path / "local.db") as theirs:
        assert ours.content_digest() == theirs.content_digest()


def test_a_missing_scheduler_is_a_clear_error(tmp_path):
    with pytest.raises(SettingError, match=r"there is no Dask scheduler at 'tcp://127\.0\.0\.1:9'"):
        run_study(STUDY, tmp_path / "a.db", backend="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(SettingError, match="needs the address of its scheduler"):
        run_study(STUDY, tmp_path / "a.db", backend="dask")
