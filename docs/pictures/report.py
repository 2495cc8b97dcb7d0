"""Take a screenshot of the top of a report page in a headless Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = ["select", "breast-cancer", "--model", "nb", "--held-out", "5", "--against", "bpso", "--quiet"]
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]


def main(folder: Path) -> None:
    """Write a report and take the screenshot."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("the screenshot needs Chromium; on Debian: apt install chromium")
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "answer.html"
        subprocess.run([sys.executable, "-m", "subswarm", *COMMAND, "--report", str(page)], check=True)
        target = folder / "report.png"
        subprocess.run(
            [browser, *FLAGS, f"--user-data-dir={scratch}/profile", "--window-size=1000,820",
             f"--screenshot={target}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
    print(target)


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "img")
