"""What changes tokens and sign-ins: each statement changes one row, or finds that there is none to change."""

from __future__ import annotations

MAKE = (
    "INSERT INTO token (token_id, secret_hash, owner, rights, session_prefix, created_us, expires_us)"
    " VALUES (:token_id, :secret_hash, :owner, :rights, :session_prefix, :created_us, :expires_us)"
)
REVOKE = "UPDATE token SET revoked_us = :now_us WHERE token_id = :token_id AND revoked_us IS NULL"

LINK = "INSERT INTO sign_in (secret_hash, token_id, kind, expires_us) VALUES (:code_hash, :token_id, 'code', :until_us)"
ENTER = (
    "UPDATE sign_in SET secret_hash = :session_hash, kind = 'session', expires_us = :expires_us"
    " WHERE secret_hash = :code_hash AND kind = 'code' AND expires_us > :now_us"
)
"""A link becomes a session: whoever is second finds no link."""
LEAVE = "DELETE FROM sign_in WHERE secret_hash = :secret_hash AND kind = 'session'"
TIDY = "DELETE FROM sign_in WHERE expires_us <= :now_us"
"""As many rows as are over."""
