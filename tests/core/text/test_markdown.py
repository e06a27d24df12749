import re

import pytest

from apps.core.text.markdown import render

# What a model might write to run something, to call home, or to break out of its place.
PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](  JaVaScRiPt:alert(1))",
    "![x](http://127.0.0.1:1/?d=secret)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '[x](http://a "onmouseover=alert(1)")',
    "<div hx-get='/settings/' hx-trigger='load'>",
    "<form action='/logout/' method='post'><button>x</button></form>",
    "<style>body{display:none}</style>",
    "<base href='http://evil/'>",
    "<meta http-equiv='refresh' content='0;url=http://evil/'>",
    "`<script>alert(1)</script>`",
    "```html\n<script>alert(1)</script>\n```",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<<script>script>alert(1)<</script>/script>",
    "| a | b |\n|---|---|\n| <img src=x onerror=alert(1)> | x |",
    '![" onerror="alert(1)](x)',
    "<details ontoggle=alert(1) open>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("before", ["", "Text\n\n", "- ", "> ", "`", "```\n"])
def test_nothing_runs_and_nothing_calls_home(payload: str, before: str) -> None:
    assert_nothing_runs(render(before + payload))


def assert_nothing_runs(html: str) -> None:
    tags = re.findall(r"<\s*([a-z0-9]+)([^>]*)>", html, re.IGNORECASE)
    assert not {name for name, _ in tags} & {
        *("script", "img", "svg", "iframe", "form", "style", "base", "meta", "object", "math"),
        *("div", "details", "button"),
    }
    for _, attributes in tags:
        assert not re.search(r"\s(on\w+|style|hx-[a-z]+|src|srcset)\s*=", attributes, re.IGNORECASE)
        assert not re.search(r"href=.{0,3}(javascript|data|vbscript):", attributes, re.IGNORECASE)


def test_markdown_is_rendered() -> None:
    html = render("**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```")
    assert "<strong>bold</strong>" in html
    assert "<td>1</td>" in html
    assert '<code class="language-python">' in html


def test_columns_stand_where_they_were_put() -> None:
    html = render("| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |")
    assert '<th class="to-right">b</th>' in html
    assert '<td class="to-center">3</td>' in html
    assert "<td>1</td>" in html
    assert "style" not in html


def test_an_image_of_another_site_becomes_a_link() -> None:
    html = render("![a cat](https://example.org/cat.png)")
    assert html.count('href="https://example.org/cat.png"') == 1
    assert ">Image: a cat</a>" in html
    assert 'title="Not loaded, so that' in html


def test_links_do_not_hand_over_who_came() -> None:
    assert 'rel="noopener noreferrer nofollow"' in render("https://example.org")


def test_a_long_text_comes_in_parts_of_whole_blocks() -> None:
    block = "## Tea\n\nSee [this][1].\n\n- a\n- b\n\n```py\nx = 1\n```\n\n> one\n>\n> two\n\n"
    block += "| a |\n|---|\n| 1 |\n\n"
    address = '[1]: https://example.org "x"\n'
    assert 'class="part"' not in render(block + address)
    text = block * 400 + address
    html = render(text)
    parts = (
        html.removeprefix('<div class="part">')
        .removesuffix("</div>")
        .split('</div><div class="part">')
    )
    assert len(parts) > 5
    assert "".join(parts) == render(block + address) * 400
    assert all(
        part.startswith(("<h2", "<p", "<ul", "<figure", "<blockq", "<table")) for part in parts
    )
    assert "<div" not in render('<div class="part">')


def test_long_nonsense_is_rendered_in_linear_time() -> None:
    assert render("[" * 20_000)
    assert render("*a " * 20_000)


LONG_ADDRESS = "https://example.org/" + "a" * 900


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("see https://example.org/a(b)c, and (http://x.y/z).",
         ["https://example.org/a(b)c", "http://x.y/z"]),
        ("mail me@example.org", ["mailto:me@example.org"]),
        ("example.com and www.foo.org/x?y=1#z.",
         ["http://example.com", "http://www.foo.org/x?y=1#z"]),
        ("http://a.b/x* and http\\://example.com/", ["http://a.b/x"]),
        ("[http://a.b](http://c.d) http://e.f", ["http://c.d", "http://e.f"]),
        (f"({LONG_ADDRESS}) {LONG_ADDRESS}.", [LONG_ADDRESS, LONG_ADDRESS]),
        ("e.g. 3.14 or `http://a.b` javascript:alert(1)", []),
    ],
)  # fmt: skip
def test_addresses_in_a_text_are_links(text: str, addresses: list[str]) -> None:
    assert re.findall('href="([^"]*)"', render(text)) == addresses


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Let $x^2$ be", '<code class="math">x^2</code>'),
        (r"So \(a<b\).", '<code class="math">a&lt;b</code>'),
        (r"\[ c \]", '<code class="math math-block">c</code>'),
        ("$$\nx\n=y\n$$", '<code class="math math-block">x\n=y</code>'),
        ("Text\n\\[\na_b*c*\n\\]\nmore", '<code class="math math-block">a_b*c*</code>'),
        ("Cost $5 and $6.", "<p>Cost $5 and $6.</p>"),
        ("$100k-$200k", "<p>$100k-$200k</p>"),
        (r"\$5 and $x$", '<p>$5 and <code class="math">x</code></p>'),
        ("`$x$`", "<code>$x$</code>"),
        ("$$ never closed\n\ntext", "<p>$$ never closed</p>"),
        ("$<img src=x>$", '<code class="math">&lt;img src=x&gt;</code>'),
    ],
)
def test_formulas(text: str, shown: str) -> None:
    assert shown in render(text)


def test_code_has_colours_by_class() -> None:
    html = render("```python\ndef f(): pass\n```")
    assert '<span class="c-k">def</span>' in html
    assert "<figcaption>python</figcaption>" in html
    assert "style=" not in html


def test_a_diagram_is_text() -> None:
    html = render("```mermaid\ngraph TD\n```")
    assert '<code class="language-mermaid">graph TD' in html


def test_open_formulas_do_not_take_quadratic_time() -> None:
    for text in ("\\(" * 5000, "$$\n" * 5000, "$a " * 5000):
        assert render(text)
