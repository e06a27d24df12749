import gc
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

# The event loop passes tokens on while threads render pages: it gets its turn after half a
# millisecond, not after five.
sys.setswitchinterval(0.0005)

django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 - as what follows, after Django is set up
from django.urls import get_resolver  # noqa: E402

from apps.core.http.health import Health  # noqa: E402
from apps.core.http.proxies import behind  # noqa: E402
from apps.core.http.refusal_cache import RemembersRefusals  # noqa: E402
from apps.llm.client import load_sdk  # noqa: E402
from apps.runtime.body_limit import LimitedBodies  # noqa: E402
from apps.runtime.handler import Handler  # noqa: E402
from apps.runtime.thread_pool import InWarmThreads, hand_back_ourselves  # noqa: E402

get_resolver().url_patterns  # noqa: B018 - imports every view now, not while somebody waits: 1.6 s
load_sdk()
hand_back_ourselves()
# What there is now stays: going through it to collect garbage would stop every answer for 120 ms.
gc.freeze()
served = LimitedBodies(Handler(), settings.UPLOAD_LIMIT_BYTES)
application = behind(settings.PROXIES, Health(RemembersRefusals(InWarmThreads(served))))
