"""The tags of the parts that several pages share."""

from django.template import Context, Template

from tests.markup import one_line


def rendered(source: str, **context: object) -> str:
    return one_line(Template(source).render(Context(context)))


def test_icon_is_hidden_from_screen_readers_without_a_label() -> None:
    icon = rendered('{% icon "trash" %}')
    assert 'aria-hidden="true"' in icon
    assert 'href="/static/img/icons.svg#trash"' in icon
    labelled = rendered('{% icon "pin" sheet="chat" label="pinned" %}')
    assert 'role="img" aria-label="pinned"' in labelled
    assert "aria-hidden" not in labelled
    assert "/static/img/chat.svg#pin" in labelled


def test_badge_escapes_its_text() -> None:
    assert rendered("{% badge text %}", text="<b>") == '<span class="badge">&lt;b&gt;</span>'
    assert (
        rendered('{% badge "Live" tone="good" %}') == '<span class="badge badge-good">Live</span>'
    )


def test_status_badge_has_one_colour_for_a_status() -> None:
    assert "badge-bad" in rendered('{% status_badge "failed" %}')
    assert rendered('{% status_badge "done" %}') == '<span class="badge badge-good">Done</span>'
    assert "badge-warn" in rendered('{% status_badge "done" accepted=0 %}')
    assert "badge-good" in rendered('{% status_badge "done" accepted=1 %}')
    assert ">Pending<" in rendered('{% status_badge "pending" %}')
    assert ">Not trained<" in rendered("{% status_badge status %}", status=None)


def test_stat_shows_its_note_where_it_has_one() -> None:
    stat = rendered('{% stat "Version" 0.9|percent suffix=3 %}')
    assert "<dt>Version 3</dt>" in stat
    assert "stat-note" not in stat
    assert ">of texts</dd>" in rendered('{% stat "Correct" 4 note="of texts" %}')


def test_notedstat_escapes_values_once() -> None:
    stat = rendered(
        '{% notedstat "Baseline" 1 %}{{ label }}; random{% endnotedstat %}', label="a&b"
    )
    assert ">a&amp;b; random</dd>" in stat


def test_tab_marks_the_page_that_is_open() -> None:
    source = '{% tab "Map" "classifiers:map" 3 name="map" current=tab %}'
    assert rendered(source, tab="map") == '<a href="/classify/3/map/" aria-current="page">Map</a>'
    assert "aria-current" not in rendered(source, tab="files")


def test_emptystate_wraps_what_to_do() -> None:
    empty = rendered(
        '{% emptystate title="No jobs yet" %}<p>{{ hint }}</p>{% endemptystate %}', hint="<"
    )
    assert empty == '<div class="empty"><h2>No jobs yet</h2><p>&lt;</p></div>'
