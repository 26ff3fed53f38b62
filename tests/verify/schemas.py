#!/usr/bin/env python3
"""Prints the digest of each schema, computed from the migrations, as tools/verify.py and docs/format.md list it.

A migration adds a number here: run this, and put its last line into SCHEMAS and into the table of the page.
run_verify.py compares all three.
"""
import hashlib
import pathlib
import sqlite3

SCHEMA = pathlib.Path(__file__).resolve().parent.parent.parent / "src/store/sqlite/schema"
SEED = (9, 13, 21, 24)  # not in a host's file


def migrations():
    return {int(part.name[:3]): part.read_text() for part in sorted(SCHEMA.glob("*.sql"))}


def digest(version, is_hosted):
    db = sqlite3.connect(":memory:")
    for number, text in migrations().items():
        if number <= version and not (is_hosted and number in SEED):
            db.executescript(text)
    out = hashlib.sha256()
    for row in db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"):
        out.update(b"".join(part.encode() + b"\0" for part in row))
    return out.hexdigest()


def all_digests():
    return {version: (digest(version, False), digest(version, True)) for version in migrations()}


if __name__ == "__main__":
    for version, (own, hosted) in all_digests().items():
        print(f'    {version}: ("{own}",\n        "{hosted}"),')
