"""What the project promises about speed and size, measured: ``make bench``.

``goals.json`` holds the rows and their goals; each module beside this one measures some rows, as ratios of CPU time within
one run wherever it can, so that a slow or busy machine moves both sides alike.
"""
