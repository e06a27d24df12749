"""The modules that run for one training run: it is read in one sitting."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier, Status
from apps.classifiers.training import run as training_run
from apps.servers.models import Server
from tests.classifiers import factories
from tests.repository.module_trace import ModuleTrace, documented_path
from workbench import urls

pytestmark = pytest.mark.django_db(transaction=True)

# Modules of classifiers at most, values and measures among them: as many as when this was set. If
# there are more, merge what always goes together and keep what is rare behind a branch.
MOST_MODULES = 37
# So many of them, and of the rooms below, are the path that a newcomer reads.
MOST_ON_THE_PATH = 15
# Whole, with all that they import: what runs as a module is imported is no part of a run.
IMPORTED = (training_run, urls)


def test_a_training_run_is_read_in_one_sitting(
    alice: User, browser: Client, embedding_server: Server
) -> None:
    rows = factories.rows() + factories.rows(3, split="test", start=50)
    data = factories.dataset(alice, rows)
    with ModuleTrace() as trace:
        browser.post("/classify/new/", {"name": "Topics", "dataset": data.pk})
        run = factories.newest(Classifier.objects.get())
        factories.train(run)
    run.refresh_from_db()
    assert (run.status, run.error) == (Status.READY, "")
    room = sorted({module for module, _ in trace.calls if module.startswith("apps.classifiers.")})
    assert len(room) <= MOST_MODULES, "\n".join(room)
    main = documented_path("A training run, in order", until="8. Then")
    assert len(main) <= MOST_ON_THE_PATH
    assert [module for module in trace.modules_in_order() if module in main] == main
