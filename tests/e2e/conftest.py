"""A fresh workshop for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.workshop import ENDLESS, REFERENCE, RIGHT, WRONG, Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    shop = Workshop(tmp_path)
    shop.write("model.py", REFERENCE)
    shop.write("right.py", RIGHT)
    shop.write("wrong.py", WRONG)
    shop.write("endless.py", ENDLESS)
    return shop
