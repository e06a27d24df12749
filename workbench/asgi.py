import os
import sys

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

# The event loop passes tokens on while threads render pages: it gets its turn after half a
# millisecond, not after five.
sys.setswitchinterval(0.0005)

_django = get_asgi_application()

from apps.core.threads import InWarmThreads, hand_back_ourselves  # noqa: E402 - needs settings

hand_back_ourselves()
application = InWarmThreads(_django)
