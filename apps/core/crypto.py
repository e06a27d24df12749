"""Secrets of other systems, encrypted with a key derived from this site's own."""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class SecretLost(Exception):
    """The text was encrypted under another SECRET_KEY and cannot be read any more."""


@cache
def _fernet_of(secret: str) -> Fernet:
    derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"workbench.secrets")
    return Fernet(base64.urlsafe_b64encode(derive.derive(secret.encode())))


def _fernet() -> Fernet:
    return _fernet_of(settings.SECRET_KEY)


def encrypt(plain: str) -> str:
    return _fernet().encrypt(plain.encode()).decode() if plain else ""


def decrypt(cipher: str) -> str:
    """Raises:
    SecretLost: SECRET_KEY has changed since.
    """
    try:
        return _fernet().decrypt(cipher.encode()).decode() if cipher else ""
    except InvalidToken as error:
        raise SecretLost("SECRET_KEY has changed: enter the key again.") from error
