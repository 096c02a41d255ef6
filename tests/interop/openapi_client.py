"""A program with the client that `openapi-python-client` made of our document: creates, shows and claims a task.

Runs in a process of its own, with the folder of the generated package on its path. Prints what it got as JSON.
"""

import json
import sys

from generated.api.plan import create
from generated.api.see import show
from generated.api.work import claim
from generated.client import AuthenticatedClient
from generated.models.claim_params import ClaimParams
from generated.models.create_params import CreateParams
from generated.models.created import Created
from generated.models.error_body import ErrorBody

address, token = sys.argv[1:]
with AuthenticatedClient(base_url=address, token=token) as client:
    made = create.sync(client=client, body=CreateParams(title="From Python", brief="Yes."))
    assert isinstance(made, Created), made
    shown = show.sync(client=client, task_id=made.task_id)
    claimed = claim.sync(client=client, body=ClaimParams(task_id=made.task_id))
    refused = create.sync(client=client, body=CreateParams(title=" "))
    assert isinstance(refused, ErrorBody), refused
    said = {
        "made": made.to_dict(),
        "shown": shown.to_dict(),
        "claimed": claimed.to_dict(),
        "refused": refused.to_dict(),
    }
    print(json.dumps(said))  # noqa: T201 - its answer
