"""Prints the tables of a workbench as JSON: `python -m tests.upgrade.inspect_database`.

{"rows": {table: [row, ...]}, "columns": {table: {column: [type, null]}}, "indexes": {table: [...]}}
"""

import json
import sys
from typing import Any

import django
from django.db import connection

LIBRARIES = ("auth_", "django_", "sqlite_", "chat_message_words")


def main() -> None:
    django.setup()
    out: dict[str, Any] = {"rows": {}, "columns": {}, "indexes": {}}
    with connection.cursor() as cursor:
        names = [info.name for info in connection.introspection.get_table_list(cursor)]
        for table in sorted(name for name in names if not name.startswith(LIBRARIES)):
            described = connection.introspection.get_table_description(cursor, table)
            out["columns"][table] = {
                column.name: [str(column.type_code), bool(column.null_ok)] for column in described
            }
            found = connection.introspection.get_constraints(cursor, table).values()
            out["indexes"][table] = sorted(
                f"{facts['columns']} {facts['unique']} {facts['primary_key']}"
                for facts in found
                if facts["columns"] and not facts["foreign_key"]
            )
            cursor.execute(f'SELECT * FROM "{table}"')
            heads = [column[0] for column in cursor.description]
            out["rows"][table] = [dict(zip(heads, row, strict=True)) for row in cursor.fetchall()]
    json.dump(out, sys.stdout, default=_as_text)


def _as_text(value: Any) -> str:
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)


if __name__ == "__main__":
    main()
