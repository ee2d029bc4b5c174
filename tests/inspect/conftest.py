"""A study, and a doctor who looks at made-up hosts of it."""

from typing import Any

import pytest

from builders.doctored import Answers, Examine, cluster
from builders.shipped_studies import lab_study
from intop.config.study import Study
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.diagnosis import Diagnosis
from intop.errors import UnreachableError
from intop.inspect.doctor import examine


@pytest.fixture(scope="module")
def study() -> Study:
    return lab_study()


@pytest.fixture
def examined(study: Study) -> Examine:
    """Diagnoses of clusters whose hosts, by name with _ for the hyphen, have other answers."""

    def ask(*clusters: Cluster, **changes: dict[str, Any]) -> list[Diagnosis]:
        def connected(address: HostAddress) -> Answers:
            other = changes.get(address.name.replace("-", "_"), {})
            if other.get("unreachable"):
                raise UnreachableError(address.name, "no route")
            return Answers(address, **other)

        return examine(clusters or (cluster(),), study, connected)

    return ask
