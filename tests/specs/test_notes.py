"""The notes on the versions: all there, short, and where they belong."""

from __future__ import annotations

import re

import pytest

from kgen.sources.render import render
from kgen.specs.notes import header_note, notes
from kgen.specs.variants import checked
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
    assert len(note.what) <= 29  # beside the rest of kgen list in 80 columns
    assert all(1 <= sentences(change) <= 2 for change in note.changes.values())
    for text in (note.what, note.why, note.mistake, note.header, *note.changes.values()):
        assert text.isascii() and "\n" not in text and "  " not in text and text == text.strip()


@pytest.mark.parametrize("version", VERSIONS)
def test_measurements_name_where_they_were_made(version: str) -> None:
    for text in (notes()[version].why, notes()[version].mistake):
        if re.search(r"\d%|measured", text):
            assert "Tesla T4" in text or "the report counted" in text


def test_no_two_versions_are_the_same_thing_in_words() -> None:
    assert len({note.what for note in notes().values()}) == len(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_of_several_changes_is_explained(version: str) -> None:
    changed = set(VERSIONS[version].changes)
    assert set(notes()[version].changes) == (changed if len(changed) > 1 else set())


@pytest.mark.parametrize("version", VERSIONS)
def test_variants_that_notes_name_are_valid_and_make_the_difference_they_say(version: str) -> None:
    parent = VERSIONS[version].parent
    for axis, why in notes()[version].changes.items():
        for variant in re.findall(r"`([^`]*)`", why):
            assert parent and variant.startswith(version)
            old = getattr(VERSIONS[parent].spec, axis)
            assert getattr(checked(variant), axis) == old


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
