"""Questions to Dagster's GraphQL interface, and answers that are no errors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_ANSWERS_WITHIN_S = 60


class Refusal(AssertionError):
    """Dagster did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class GraphQL:
    address: str

    def ask(self, question: str, **variables: Any) -> Any:
        """The data of an answer."""
        asked = Request(  # noqa: S310 - the address is ours
            f"{self.address}/graphql",
            json.dumps({"query": question, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urlopen(asked, timeout=_ANSWERS_WITHIN_S) as answer:  # noqa: S310 - as above
                found = json.load(answer)
        except HTTPError as error:
            raise Refusal(error.read().decode()) from None
        if found.get("errors"):
            raise Refusal(json.dumps(found["errors"], indent=2))
        return found["data"]

    def only(self, kind: str, question: str, **variables: Any) -> Any:
        """The one field of an answer, which must be of a kind."""
        [found] = self.ask(question, **variables).values()
        if found["__typename"] != kind:
            raise Refusal(f"{found['__typename']}, not {kind}: {json.dumps(found)[:2000]}")
        return found
