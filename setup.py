"""Packaging: the four top-level folders become one import package."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
FOLDERS = {
    "serde": "serde", "backends": "serde.backends", "formats": "serde.formats",
    "frontends": "serde.frontends", "bridges": "serde.bridges",
}  # fmt: skip


def packages() -> list[str]:
    """Every package, under the name it is imported by."""
    found = []
    for folder, name in FOLDERS.items():
        found.append(name)
        found += [f"{name}.{sub}" for sub in find_packages(str(HERE / folder))]
    return found


setup(
    name="serde-hub",
    version="0.1.0",
    description="Moves deep-learning models between MXNet, TVM Relay and ONNX",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=packages(),
    package_dir={name: folder for folder, name in FOLDERS.items()},
    package_data={
        "serde": ["py.typed"],
        "serde.api.report": ["page.html", "page.css", "page.js"],
        "serde.backends": ["descriptions/*.toml"],
    },
    install_requires=[
        "numpy>=1.26",
        "onnx>=1.23",
        "click>=8.1",
        "rich>=13",
        "tomli>=2; python_version < '3.11'",
    ],
    extras_require={
        "verify": ["onnxruntime>=1.20"],
        "migrate": ["fsspec>=2023.1", "joblib>=1.3"],
        "dask": ["fsspec>=2023.1", "distributed>=2024.1"],
        # What MXNet 1.9.1 imports, which itself is installed without its dependencies: they ask
        # for a NumPy of before 2. Python has no distutils from 3.12 on; setuptools brings it back.
        "mxnet": ["graphviz", "requests", "setuptools>=70.1"],
        "test": [
            "onnxruntime>=1.20",
            "pillow>=10",
            "pytest>=8",
            "pytest-xdist>=3",
            "setuptools>=70.1",  # the plug-in of the tests is built by it
            "hypothesis>=6",
            "jsonschema>=4",
            "fsspec>=2023.1",
            "joblib>=1.3",
            "distributed>=2024.1",
            "ruff>=0.9",
            "mypy>=1.13",
            "scikit-learn>=1.5",
            "skl2onnx>=1.17",
        ],
    },
    entry_points={
        "console_scripts": ["serde = serde.cli.commands:main"],
        "serde.formats": [
            "onnx = serde.formats.onnx:FORMAT",
            "mxnet = serde.formats.mxnet:FORMAT",
            "relay = serde.formats.relay:FORMAT",
        ],
        "serde.bridges": [
            "mxnet = serde.bridges.mxnet:BRIDGE",
            "onnx = serde.bridges.onnxruntime:BRIDGE",
            "tvm = serde.bridges.tvm:BRIDGE",
        ],
    },
)
