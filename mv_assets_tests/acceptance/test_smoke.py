from mv_assets.state.model import Outcome, State
from mv_assets_tests.harness import Deployment


def test_append(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.table.day("b", 2, 1)
    deployment.look()
    assert deployment.refresh(0, 1) == {0: Outcome.COMMITTED, 1: Outcome.COMMITTED}
    assert deployment.watermark == 2
    deployment.table.day("b", 3, 1)
    assert deployment.look() == [1]
    assert deployment.state(1) is State.STALE
    deployment.converge()
    assert deployment.state(1) is State.VALID
    with deployment.leases.pin("v") as pinned:
        assert len(pinned.snapshot.rows) == 2
