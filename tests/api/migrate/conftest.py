"""What the tests of a migration share."""

from tests.api.migrate.zoo import bucket as bucket
from tests.api.migrate.zoo import in_empty_folder as in_empty_folder
from tests.api.migrate.zoo import in_this_process as in_this_process
from tests.api.migrate.zoo import zoo as zoo
