#!/bin/sh
# Django: a filter across a GenericRelation finds no row whose key is a UUID.
#
# Package: Django 5.2.19 (PyPI; the newest for Python 3.11), with SQLite.
# Guess: object_id is a CharField, so that keys of any type fit. What
#   order.tags.all() finds, Order.objects.filter(tags__name=...) finds too.
# Behaviour: without a type for UUIDs, as in SQLite, a UUIDField holds 32 hex
#   digits, while object_id holds the text with dashes. Access from one
#   object, prefetch_related and delete convert the key and are right. A JOIN
#   compares the two texts: filter finds nothing, exclude finds all, and
#   Count is 0, without an error. A BigIntegerField as key works in all of them.
# Seen 2026-11-29: tags.all() has one tag and filter no row for a UUIDv7, one
#   and one for a 63-bit ID.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check Django==5.2.19

mkdir shop
touch shop/__init__.py
cat >shop/models.py <<'EOF'
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models


class Tag(models.Model):
    name = models.TextField()
    content_type = models.ForeignKey(ContentType, on_delete=models.CASCADE)
    object_id = models.CharField(max_length=36)
    item = GenericForeignKey()


class UUIDOrder(models.Model):
    id = models.UUIDField(primary_key=True)
    tags = GenericRelation(Tag)


class IntegerOrder(models.Model):
    id = models.BigIntegerField(primary_key=True)
    tags = GenericRelation(Tag)
EOF
cat >main.py <<'EOF'
import uuid

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "shop"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()

from django.core.management import call_command
from django.db.models import Count
from shop.models import IntegerOrder, UUIDOrder

call_command("migrate", verbosity=0, run_syncdb=True)
for model, key in (UUIDOrder, uuid.UUID("019aca0e-5800-7000-8000-000000000001")), (IntegerOrder, 1179183313482456071):
    order = model.objects.create(id=key)
    order.tags.create(name="urgent")
    rows = model.objects
    print(
        f"{model.__name__}: tags.all {order.tags.count()},",
        f"prefetch {len(rows.prefetch_related('tags')[0].tags.all())},",
        f"filter {rows.filter(tags__name='urgent').count()},",
        f"exclude {rows.exclude(tags__name='urgent').count()},",
        f"Count {rows.annotate(tag_count=Count('tags'))[0].tag_count}",
    )
EOF
cat >want <<'EOF'
UUIDOrder: tags.all 1, prefetch 1, filter 0, exclude 1, Count 0
IntegerOrder: tags.all 1, prefetch 1, filter 1, exclude 0, Count 1
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "django-generic-relation-misses-uuid-keys: no longer holds" >&2; exit 1; }
