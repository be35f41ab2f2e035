"""Everything that comes from data is escaped."""

import json
from html.parser import HTMLParser

import pytest

from lgcn.report.charts import label_expression
from lgcn.report.html import Html, json_text, table, tag
from lgcn.report.names import MAX_NAME, shown_name
from tests.report.runs import HOSTILE


class Reader(HTMLParser):
    """Collects elements and text, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_wherever_they_stand(name: str) -> None:
    read = Reader(tag("p", name, title=name))
    assert read.tags == [("p", {"title": name})]
    assert "".join(read.texts) == name
    read = Reader(table([name], [[name]], caption=name))
    assert {found for found, _ in read.tags} <= {
        *("p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_json_in_a_script_cannot_end_it_and_stays_the_same(name: str) -> None:
    text = json_text({name: [name, None, 1.5]})
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == {name: [name, None, 1.5]}


def test_html_is_not_escaped_twice_and_flags_have_no_value() -> None:
    assert tag("p", Html("<b>x</b>"), ["a", None, 1], hidden=True, id=None) == (
        "<p hidden><b>x</b>a1</p>"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_expressions_of_charts_are_strings(name: str) -> None:
    text = label_expression([name])
    assert text.isascii()
    assert json.loads(text.removesuffix("[datum.value]")) == [name]


def test_names_show_control_characters_and_are_not_long() -> None:
    assert shown_name("a\u202eb\x1b\n") == "a\\u202eb\\x1b\\n"
    assert len(shown_name("x" * 1000)) == MAX_NAME
    assert shown_name(b"caf\xc3\xa9") == "café"
    assert shown_name("\ud800") == "\\ud800"
