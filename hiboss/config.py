"""The settings and their defaults. Limits are settings too: over one, a clear error and nothing stored."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    # limits
    text_bytes: int = MIB
    subject_bytes: int = KIB
    metadata_bytes: int = 16 * KIB
    word_bytes: int = 256  # keys, trace ids, names of people, one-line descriptions
    attachments: int = 20
    attachment_bytes: int = 50 * MIB
    recipients: int = 100
    frame_bytes: int = 4 * MIB
    batch_requests: int = 1_000
    connections: int = 4_096
    requests_in_flight: int = 512  # of one connection; more are left unread until some are answered
    page_size: int = 10
    page_size_limit: int = 100
    count_exact_to: int = 1_000
    # the store
    writer_queue: int = 8_192
    group_operations: int = 1_024
    lock_wait_seconds: float = 5.0
    # life
    stop_seconds: float = 5.0
    log_bytes: int = 10 * MIB
    log_files: int = 5


DEFAULTS = Settings()
