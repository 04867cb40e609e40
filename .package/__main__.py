# SPDX-License-Identifier: MIT
"""python -m tensorfmt"""
import sys

from tensorfmt import main

sys.exit(main())
