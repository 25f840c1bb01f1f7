"""What users do with a live TVM with Relax and serde in one process; ``test_relax.py`` runs it.

    python tests/relax/relax_script.py SITE MODEL FEED

SITE is the folder of serde's own packages, MODEL a file, FEED an array. Prints JSON.
"""

from __future__ import annotations

import json
import site
import sys

import numpy as np

site.addsitedir(sys.argv[1])

import tvm
from tvm import relax

import serde

module = serde.import_(sys.argv[2], to="relax")
machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
results = machine["main"](tvm.runtime.tensor(np.load(sys.argv[3])))
names = [p.name for p in module["main"].params]
print(json.dumps([names, [np.asarray(y.numpy()).tolist() for y in results]]))
