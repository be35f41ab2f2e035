"""``python -m lgcn`` is the command ``lgcn``."""

from lgcn.cli import main

main()
