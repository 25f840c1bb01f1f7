"""What lower modules of the tracer call of higher ones is there, by name."""

import numpy as np
import pytest

from serde.frontends.numpy import hooks


@pytest.mark.parametrize("name", hooks.MODULES)
def test_every_name_is_found(name):
    assert getattr(hooks, name) is not None


def test_the_namespace_is_a_module_of_functions():
    assert hooks.namespace.add is np.add or callable(hooks.namespace.add)


def test_others_are_not():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hooks.nothing
