"""Orders with Firn IDs in SQLAlchemy: a number as the key, typed text in Python and JSON."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

import firn

client = firn.Client(os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(","))
orders, items = client.sequencer("orders"), client.sequencer("items")
ORDER = firn.Typed("order")


class Base(DeclarativeBase):
    pass


class OrderText(TypeDecorator[str]):
    """order_… in Python and JSON, a bigint in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> int | None:
        return None if value is None else ORDER.parse(value)

    def process_result_value(self, value: int | None, dialect: Any) -> str | None:
        return None if value is None else ORDER.format(value)


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[str] = mapped_column(
        OrderText, primary_key=True, default=lambda: ORDER.format(orders.next())
    )


class Item(Base):
    __tablename__ = "items"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, default=lambda: items.next())
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.id"))
    name: Mapped[str]
