"""Orders with Firn IDs in Django: the models of an app named shop."""

from __future__ import annotations

import os

from django.db import models

import firn

client = firn.Client(os.environ.get("FIRN_SERVERS", "http://127.0.0.1:3476").split(","))
orders = client.sequencer("orders")
ORDER = firn.Typed("order")


def next_order() -> int:
    return orders.next()


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True, default=next_order, editable=False)
    item = models.TextField()

    class Meta:
        app_label = "shop"

    @property
    def text(self) -> str:
        return ORDER.format(self.id)
