"""Text cut anywhere: finished blocks never change, and the end is what `render` makes of it."""

import random
import re

import pytest

from apps.core.text import markdown
from apps.core.text.live_markdown import CHUNK_CHARACTERS, LiveMarkdown
from tests.core.text.test_markdown import PAYLOADS, assert_nothing_runs

ANSWER = r"""# Why it is *slow*

Your loop sends **eight requests** to a server with `four` slots, see [this](https://example.org).
It waits; ***really***, ~~never~~ often_enough_.

1. First
2. Second
   - inner `code`
   - [x] done

   more of it

- [ ] open
- [x] closed

| Order | Time | **Share** |
|:------|-----:|:---------:|
| a | 4,112 | `3%` |
| b | $5 | x |

```python
slots = 4  # as many

def f(x):
    return "```" + x
```
Then $t = \frac{n}{r}$ or \(a^2\), and

$$
t = \frac{n_{prompt}}{r}
+ 1
$$

> quoted **text
> goes on**
>
> - list

~~~
tilde
~~~

***

Total of $5 and $6.
"""
SAMPLES = {
    "answer": ANSWER,
    "headings": "# a\n## b\nText\n===\nText\n---\n#no\n\nx\n# y",
    "lists": (
        "- a\n- b\n\n- c\n\n  d\n\n1. x\n2. y\n10) z\n\n\nText\n+ p\n  1. q\n\n      code\n\nend"
    ),
    "lazy": "> a\nb\n\n> c\n- d\ne\n\n    code\n\n    more\n\nx",
    "formulas": (
        "$$\na\n# b\n\nc\n\n$$ x $$\ntext $$y$$ z\n\\[\nq\n\\]\nw \\(u\\)\n\n- $$\n  k\n  $$\n"
    ),
    "formula over a heading": "a\n$$\nb\n# c\nd\n$$\ne\n\n$$\nnever",
    "tables": "a | b\n--|--\n1 | 2\n\n| h |\n|---|\n| x |\n# no row\n| only |\n\n|a|\n|b|",
    "fences": "````\n```\nin\n````\n```js\nopen",
    "indented fences": (
        "- ```py\n  x = 1\n  ```\n- b\n\n  ```\n  c\n\n  d\n  ```\n\nx\n  ```\n  y\n  ```\nz"
    ),
    "breaks": "a  \nb\\\nc\n* * *\n- - -\n__bold__ and _thin_\n",
    "addresses": (
        '[a]: https://example.org "x"\n\nSee [a] and https://b.org/c(d).\n\n'
        "[b]:\nhttps://x.y\n'a\nb'\n\n[b]"
    ),
    "lines of Windows": "a\r\n\r\n- b\r\n- c\r\n\r\n```\r\nx\r\n```\r\ny",
    "letters": "Zażółć 👩‍👩‍👧‍👦 e\u0301\n\n中文**也**可以\n\n\tcode\n",
    "html": "<b>x</b>\n\n<div>\n\n&amp; &lt;\n\n<!-- c -->",
    "marks alone": "**\n\n`\n\n$\n\n*a **b*\n\n`` ` ``\n\n[x](y\n\n![i](j)\n\n\\",
}


def end_of(text: str) -> str:
    return re.sub(r"\n", "", markdown.render(text))


def shown_by(live: LiveMarkdown) -> str:
    return "".join(live.blocks).replace("\n", "")


@pytest.mark.parametrize("name", SAMPLES)
def test_no_finished_block_changes_at_any_position(name: str) -> None:
    live, finished = LiveMarkdown(), list[str]()
    for letter in SAMPLES[name]:
        live.add(letter)
        live.render()
        assert live.blocks[: len(finished)] == finished
        finished = list(live.blocks)
    live.finish()
    assert live.blocks[: len(finished)] == finished
    assert live.is_exact
    assert shown_by(live) == end_of(SAMPLES[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_pieces_that_a_text_comes_in_make_no_difference(name: str) -> None:
    text, chance = SAMPLES[name], random.Random(name)
    for _ in range(5):
        live, at = LiveMarkdown(), 0
        while at < len(text):
            size = chance.randint(1, 40)
            live.add(text[at : at + size])
            live.render()
            at += size
        live.finish()
        assert shown_by(live) == end_of(text)


@pytest.mark.parametrize("seed", range(20))
def test_no_finished_block_changes_in_nonsense(seed: int) -> None:
    chance = random.Random(seed)
    marks = [
        "# ",
        "- ",
        "1. ",
        "> ",
        "```",
        "$$",
        "|",
        "---",
        "\n",
        "\n\n",
        "  ",
        "    ",
        "a",
        "*",
        "`",
        "[",
        "]: b",
    ]
    text = "".join(chance.choices(marks, k=60))
    live, finished = LiveMarkdown(), list[str]()
    for letter in text:
        live.add(letter)
        live.render()
        assert live.blocks[: len(finished)] == finished
        finished = list(live.blocks)
    live.finish()
    assert not live.is_exact or shown_by(live) == end_of(text), text


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_runs_at_any_position(payload: str) -> None:
    for before in ("", "- ", "> **", "`", "```\n", "| a |\n|---|\n| ", "$$\n"):
        live = LiveMarkdown()
        for letter in before + payload:
            live.add(letter)
            live.render()
            assert_nothing_runs("".join(live.blocks + live.open))


def text_at(written: str) -> str:
    live = LiveMarkdown()
    live.add(written)
    live.render()
    return "".join(live.blocks + live.open)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("#", ""),
        ("## Ti", "<h2>Ti</h2>"),
        ("a **bo", "<p>a <strong>bo</strong></p>"),
        ("a **bold*", "<p>a <strong>bold</strong></p>"),
        ("a **", "<p>a</p>"),
        ("a *b **c", "<p>a <em>b <strong>c</strong></em></p>"),
        ("2 * 3", "<p>2 * 3</p>"),
        ("a `co", "<p>a <code>co</code></p>"),
        ("a `code`", "<p>a <code>code</code></p>"),
        ("see [text](https://exa", "<p>see text</p>"),
        ("so $x^", "<p>so</p>"),
        ("costs $5 and", "<p>costs $5 and</p>"),
        (r"so \(x", "<p>so</p>"),
        ("a\n\n$$\nx", "<p>a</p><p>&nbsp;</p>"),
        ("a\n-", "<p>a</p>"),
        ("- a\n-", "<ul>\n<li>a</li>\n</ul>"),
        ("- [", ""),
        ("``", ""),
        ("```pyth", ""),
        ("| a | b", ""),
    ],
)  # fmt: skip
def test_no_half_of_a_mark_is_shown(written: str, shown: str) -> None:
    assert text_at(written) == shown


def test_a_table_is_one_from_its_head_on() -> None:
    for written in ("| a | b |\n", "| a | b |\n|--", "| a | b |\n|---|---|\n| "):
        assert "<th>b</th>" in text_at(written)
        assert "-" not in text_at(written)
    assert "<td>1</td>" in text_at("| a | b |\n|---|---|\n| 1")


def test_a_fence_is_code_from_its_first_line_on() -> None:
    opened = text_at("```python\n")
    assert opened.startswith('<figure class="code"><figcaption>python</figcaption>')
    assert text_at("```python\nx = 1\n``").count("`") == 0


def test_json_is_code_while_it_is_written_and_rendered_as_a_whole_at_the_end() -> None:
    live = LiveMarkdown()
    live.add('{"a": [1,')
    live.render()
    assert live.open[0].startswith('<figure class="code"><figcaption>json</figcaption>')
    assert not live.is_exact


def test_an_address_below_its_link_is_known_at_the_end_alone() -> None:
    live = LiveMarkdown()
    live.add("See [a].\n\nText\n\n[a]: https://example.org\n")
    live.render()
    live.finish()
    assert not live.is_exact


def test_long_open_code_is_not_coloured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured: list[int] = []
    colour = markdown.coloured

    def counted(language: str, code: str) -> str:
        coloured.append(len(code))
        return colour(language, code)

    monkeypatch.setattr(markdown, "coloured", counted)
    live = LiveMarkdown()
    live.add("```python\n")
    for number in range(700):
        live.add(f"x{number} = {number}  # counted\n")
        live.render()
    assert max(coloured) < 2 * CHUNK_CHARACTERS
