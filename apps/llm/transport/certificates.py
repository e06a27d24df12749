"""TLS certificates: the system's, and an own CA's from WORKBENCH_CA_FILE."""

import ssl
from functools import cache

import httpx2
from django.conf import settings

from apps.llm import errors


def tls_context() -> ssl.SSLContext:
    """Return the TLS context for connections to model servers.

    Raises:
        CertificateRefused: WORKBENCH_CA_FILE is not a file of certificates.
    """
    return _tls_context(settings.CA_FILE)


@cache
def _tls_context(ca_file: str) -> ssl.SSLContext:
    context = httpx2.create_ssl_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError as error:  # an SSLError is one
            raise errors.CertificateRefused(
                f"WORKBENCH_CA_FILE: {ca_file} is not a file of certificates in PEM format."
            ) from error
    return context


def tls_failure(error: ssl.SSLError) -> errors.LLMError:
    """Return the error of a connection that failed in its TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = (error.verify_message or str(error)).rstrip(".")
        return errors.CertificateRefused(
            f"The model server answers, but its certificate is not trusted: {reason}. For a CA of "
            "your own, set WORKBENCH_CA_FILE to its certificate and restart Workbench."
        )
    return errors.CertificateRefused(
        "Something answers at the model server's address, but not over TLS. Does the address begin "
        "with http://?"
    )
