"""The packages of the wheel and the files they carry; everything else is in setup.cfg.

templates/ and static/ stand outside svc/, where people look for them; an installed wheel
carries them as svc/_templates and svc/_static. svc/assets.py finds them in both places.
"""

from setuptools import find_packages, setup

OUTSIDE = ("templates", "static")

setup(
    packages=[*find_packages(include=["svc", "svc.*"]), *(f"svc._{name}" for name in OUTSIDE)],
    package_dir={f"svc._{name}": name for name in OUTSIDE},
    package_data={
        "svc": ["py.typed", "recipes/*.json", "openapi/*.json"],
        "svc.store": ["*.sql"],
        **{f"svc._{name}": ["*"] for name in OUTSIDE},
    },
)
