"""A table that is wider than a phone scrolls, by keyboard too."""

import re
from pathlib import Path

from django.conf import settings

WRAP = re.compile(r'<div class="table-wrap[^>]*>')


def test_a_table_that_may_scroll_can_be_focused_and_has_a_name() -> None:
    found = {
        f"{path.name}: {tag}"
        for path in Path(settings.BASE_DIR, "templates").rglob("*.html")
        for tag in WRAP.findall(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 10
    unnamed = [tag for tag in found if 'tabindex="0"' not in tag or "aria-label=" not in tag]
    assert unnamed == []
