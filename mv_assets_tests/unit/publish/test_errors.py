"""What is said of a target that does not do what it should."""

from __future__ import annotations

import pytest

from mv_assets.publish.errors import trouble


def test_what_an_error_was_caused_by_is_said_too() -> None:
    error = OSError(
        "Generic S3 error\n\x1b[31m↳\x1b[0m Error performing GET\n  \x1b[31m↳\x1b[0m timed out\nmore"
    )
    assert trouble(error, {}).startswith("Generic S3 error: Error performing GET: timed out; see that")


@pytest.mark.parametrize(
    ("said", "options", "shown"),
    [
        ("401: token hunter2 is not known", {"token": "hunter2"}, "401: token ... is not known"),
        ("no key AKIA", {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_REGION": ""}, "no key ..."),
        ("sql://me:p%40ss@host/db: no", {"uri": "sql://me:p%40ss@host/db"}, "sql://***@host/db: no"),
        ("password p@ss is wrong", {"uri": "sql://me:p%40ss@host/db"}, "password ... is wrong"),
        ("GET https://h/c?sig=abc", {"uri": "https://h/c?sig=abc"}, "GET https://h/c?..."),
        (r"header 'a: hunter2\n'", {"header.X": "a: hunter2\n"}, "header '...'"),
        ("token hunter2", {"header.Authorization": "Bearer hunter2"}, "token ..."),
        ("in us, of bearer", {"region-of": "us", "header.X": "Bearer"}, "in us, of bearer"),
        (
            "https://host/c is not true",
            {"uri": "https://host/c", "s3.x": "true"},
            "https://host/c is not true",
        ),
    ],
)
def test_no_secret_of_the_options_is_repeated(said: str, options: dict[str, str], shown: str) -> None:
    assert trouble(ValueError(f"{said}\nmore"), options).startswith(f"{shown}; see that")
