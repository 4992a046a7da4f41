"""What keeps a TLS connection from being made, in the user's words.

Codes of a certificate's faults: https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/. What is wrong with the
rest of a connection OpenSSL tells by a reason's name, which Python hands on (`ssl.SSLError.reason`).
"""

from __future__ import annotations

import ssl

__all__ = ["fault", "is_passing"]

#: Not valid yet, and not any more.
_OUT_OF_DATE = (9, 10)
#: Another host, another address.
_OTHER_NAME = (62, 64)
#: What OpenSSL makes of an answer that is plain text.
_PLAIN_TEXT = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_BROKEN = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_ANOTHER_NAME = "the server's certificate is for another name: check its address (datasets.endpoint, AWS_ENDPOINT_URL)."
_GARBLED = "DECRYPTION_FAILED_OR_BAD_RECORD_MAC"


def is_passing(error: object) -> bool:
    """Whether the connection was made but broke, which the next one need not do."""
    return isinstance(error, _BROKEN) or getattr(error, "reason", None) == _GARBLED


def fault(error: object) -> str:
    """A sentence about an error that stays, and what to do."""
    if not isinstance(error, ssl.SSLError):
        return _other_fault(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_fault(error)
    if error.library in ("X509", "PEM"):
        return _no_authorities("no certificate in it")
    if error.reason in _PLAIN_TEXT:
        return "the server does not speak TLS there: does its address begin with http:// instead of https://?"
    return f"no encrypted connection with the server can be made ({error.reason or error})."


def _certificate_fault(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _OTHER_NAME:
        return _ANOTHER_NAME
    if error.verify_code in _OUT_OF_DATE:
        return "the server's certificate is not valid today: check your clock, or ask whoever runs the server."
    return (
        f"the server's certificate is not trusted ({error.verify_message}): for an authority of your own, set "
        "AWS_CA_BUNDLE to its certificate's file."
    )


def _other_fault(error: object) -> str:
    if isinstance(error, ValueError):  # urllib3's, where it compares names itself
        return _ANOTHER_NAME
    return _no_authorities(error.strerror if isinstance(error, OSError) else error)


def _no_authorities(why: object) -> str:
    return f"the file of trusted authorities cannot be used ({why}): check AWS_CA_BUNDLE."
