"""The notes on the versions: all there, short, and where they belong."""

from __future__ import annotations

import re

import pytest

from kgen.sources.render import render
from kgen.specs.notes import header_note, notes
from kgen.specs.versions import VERSIONS


def sentences(text: str) -> int:
    return len(re.findall(r"[.?!](?=\s|$)", text))


def test_every_version_has_a_note_and_no_other() -> None:
    assert set(notes()) == set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_notes_are_short_plain_text(version: str) -> None:
    note = notes()[version]
    assert 2 <= sentences(note.why) <= 4
    assert 1 <= sentences(note.mistake) <= 3
    assert sentences(note.header) <= 2
    for text in (note.why, note.mistake, note.header):
        assert text.isascii() and "\n" not in text and "  " not in text and text == text.strip()


@pytest.mark.parametrize("version", VERSIONS)
def test_measurements_name_where_they_were_made(version: str) -> None:
    for text in (notes()[version].why, notes()[version].mistake):
        if re.search(r"\d%|measured", text):
            assert "Tesla T4" in text or "the report counted" in text


def header_of(version: str) -> str:
    lines = render(VERSIONS[version].spec).text.split("\n")
    return " ".join(line.removeprefix("//").strip() for line in lines[: lines.index("")])


@pytest.mark.parametrize("version", ["c1", "v9"])
def test_the_header_carries_the_note(version: str) -> None:
    assert "last __syncthreads of row_reduce" in header_note(version)
    assert header_note(version) in header_of(version)


def test_c1_says_what_the_study_lacks() -> None:
    assert "The study that c1 comes from lacks the barrier" in header_of("c1")


def test_other_headers_have_no_note() -> None:
    assert {name for name in VERSIONS if header_note(name)} == {"c1", "v9"}
    assert header_note("v99") == ""
