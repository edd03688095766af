"""Puts what the package reads into its wheel, as ``trustlab/_data``: data, notebooks, parameters.

Kept replies stay out, and so do the notebooks' outputs: whoever runs them makes their own.
"""

import json
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
PARTS = ("data", "notebooks")
LEFT_OUT = {"replies", ".ipynb_checkpoints", "__pycache__", "record.jsonl"}


class WithData(build_py):
    """build_py, and the copy; an editable install reads the checkout."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if not self.editable_mode:
            for source, target in self._copies().items():
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.suffix == ".ipynb":
                    target.write_text(without_outputs(source), encoding="utf-8")
                else:
                    shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Every file that is made."""
        return [
            *super().get_outputs(include_bytecode),
            *map(str, self._copies().values()),
        ]

    def _copies(self) -> dict[Path, Path]:
        folder = Path(self.build_lib) / "trustlab" / "_data"
        files = (
            f for part in PARTS for f in sorted((HERE / part).rglob("*")) if f.is_file()
        )
        names = (f.relative_to(HERE) for f in files)
        return {
            HERE / name: folder / name
            for name in names
            if not LEFT_OUT & set(name.parts)
        }


def without_outputs(notebook: Path) -> str:
    """A notebook's text without what its cells printed and drew."""
    found = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in found["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


setup(cmdclass={"build_py": WithData})
