"""Who sends a request, before its body is read."""

import pytest
from django.contrib.auth.models import User

from apps.core.http.senders import sender
from apps.core.models import ApiKey


@pytest.mark.parametrize(
    ("header", "prefix"), [(b"authorization", b"Bearer "), (b"x-api-key", b"")]
)
def test_a_key_comes_as_openais_or_as_anthropics_clients_send_it(
    alice: User, header: bytes, prefix: bytes
) -> None:
    _, token = ApiKey.issue(user=alice, name="laptop")
    assert sender([(header, prefix + token.encode())]) == alice.pk
    assert sender([(header, prefix + b"wb_wrong")]) is None
