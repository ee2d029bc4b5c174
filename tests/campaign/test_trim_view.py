"""The measurements of trim as text in a file."""

import pytest

from builders.results import TRIMMED
from intop.campaign.verify.trim_view import slow_sentence, trim_sentence, trim_tables
from kit.golden import Golden
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def test_each_set_and_each_change_has_its_ratio(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    sentences = [trim_sentence(TRIMMED), *map(slow_sentence, TRIMMED.slow)]
    golden("\n".join(sentences) + "\n" + shown(capsys, *trim_tables(TRIMMED)))
