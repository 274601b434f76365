import unittest
from unittest.mock import patch

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()

from django.db import connection  # noqa: E402
from django.db.migrations.writer import MigrationWriter  # noqa: E402

import orm_django as orm  # noqa: E402  the settings come first
from firn.testing import FakeClient  # noqa: E402


class Orders(unittest.TestCase):
    def setUp(self) -> None:
        patcher = patch.object(orm, "orders", FakeClient(node=7).sequencer("orders"))
        patcher.start()
        self.addCleanup(patcher.stop)
        with connection.schema_editor() as editor:
            editor.create_model(orm.Order)
        self.addCleanup(self.drop)

    def drop(self) -> None:
        with connection.schema_editor() as editor:
            editor.delete_model(orm.Order)

    def test_keys(self) -> None:
        order = orm.Order.objects.create(item="tea")
        self.assertEqual(order.text, "order_01t87rc000w01")
        order.item = "cup"
        order.save()
        found = orm.Order.objects.get(id=orm.ORDER.parse(order.text))
        self.assertEqual((found.id, found.item), (order.id, "cup"))

    def test_bulk_insert(self) -> None:
        orm.Order.objects.bulk_create(orm.Order(item=str(n)) for n in range(5000))
        ids = orm.Order.objects.values_list("id", flat=True)
        self.assertEqual(len(set(ids)), 5000)

    def test_migrations_name_the_function(self) -> None:
        text, _ = MigrationWriter.serialize(orm.Order._meta.get_field("id"))
        self.assertIn("default=orm_django.next_order", text)


if __name__ == "__main__":
    unittest.main()
