import unittest
from unittest.mock import patch

from sqlalchemy import create_engine, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

import orm_sqlalchemy as orm
from firn.testing import FakeClient


class Orders(unittest.TestCase):
    def setUp(self) -> None:
        fake = FakeClient(node=7)
        for name in ("orders", "items"):
            patcher = patch.object(orm, name, fake.sequencer(name))
            patcher.start()
            self.addCleanup(patcher.stop)
        engine = create_engine("sqlite://")
        self.addCleanup(engine.dispose)
        orm.Base.metadata.create_all(engine)
        self.session = Session(engine)
        self.addCleanup(self.session.close)

    def test_keys(self) -> None:
        order = orm.Order()
        self.session.add(order)
        self.session.flush()
        self.assertEqual(order.id, "order_01t87rc000w01")
        stored = self.session.connection().exec_driver_sql("SELECT id FROM orders").scalar_one()
        self.assertEqual(stored, orm.ORDER.parse(order.id))
        self.assertIs(self.session.get(orm.Order, order.id), order)

    def test_bulk_insert(self) -> None:
        order = orm.Order()
        self.session.add(order)
        self.session.flush()
        self.session.add_all(orm.Item(order_id=order.id, name=name) for name in ("tea", "cup"))
        self.session.commit()
        rows = [{"order_id": order.id, "name": str(n)} for n in range(5000)]
        self.session.execute(insert(orm.Item), rows)
        found = self.session.execute(select(orm.Item.id, orm.Item.order_id)).all()
        self.assertEqual(len({row.id for row in found}), 5002)
        self.assertEqual({row.order_id for row in found}, {order.id})
        copies = select(orm.Item.order_id, orm.Item.name).limit(2)
        with self.assertRaises(IntegrityError):  # one default for all rows
            self.session.execute(insert(orm.Item).from_select(["order_id", "name"], copies))

    def test_the_database_makes_no_keys(self) -> None:
        dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        for table in orm.Base.metadata.sorted_tables:
            sql = str(CreateTable(table).compile(dialect=dialect))
            self.assertIn("\tid BIGINT NOT NULL", sql)


if __name__ == "__main__":
    unittest.main()
