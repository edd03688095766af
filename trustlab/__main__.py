"""``python -m trustlab``: the command line."""

from trustlab.cli.commands import app

if __name__ == "__main__":
    app(prog_name="trustlab")
