import gc
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

# The event loop passes tokens on while threads render pages: beside a busy thread its wake-ups are
# 6.8 ms late (median) instead of 13.3 with the default of 5 ms.
sys.setswitchinterval(0.0005)

django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 - as what follows, after Django is set up
from django.urls import get_resolver  # noqa: E402

from apps.core.http.body_limit import BodyLimitMiddleware  # noqa: E402
from apps.core.http.health import Health  # noqa: E402
from apps.core.http.proxies import behind  # noqa: E402
from apps.core.http.refusal_cache import RefusalCacheMiddleware  # noqa: E402
from apps.core.http.too_many_requests import too_many_requests  # noqa: E402
from apps.gateway.application import Gateway  # noqa: E402
from apps.llm.client import load_sdk  # noqa: E402
from apps.runtime.handler import Handler  # noqa: E402
from apps.runtime.threads.thread_pool_middleware import (  # noqa: E402
    ThreadPoolMiddleware,
    disconnect_connection_signals,
)

get_resolver().url_patterns  # noqa: B018 - imports every view now, not while somebody waits: 1.6 s
load_sdk()
disconnect_connection_signals()
# What there is now stays: going through it to collect garbage would stop every answer for 120 ms.
gc.freeze()
limited = BodyLimitMiddleware(Gateway(Handler()), settings.UPLOAD_LIMIT_BYTES)
pooled = ThreadPoolMiddleware(
    limited, max_waiting=settings.LIMITS["requests"], refuse=too_many_requests
)
application = behind(settings.PROXIES, Health(RefusalCacheMiddleware(pooled)))
