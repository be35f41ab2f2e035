"""Writes tables of invented molecules: molecules.csv, atoms.csv and bonds.csv.

python examples/molecules/make_molecules.py [FOLDER]

A molecule is a carbon ring with side chains. It counts as toxic if some nitrogen is bonded to two
oxygens. Others have as many atoms of each element, in other places, so that counting atoms says
little. One label in twenty is wrong, and one molecule in six has none.
"""

import sys
from pathlib import Path

import numpy as np

COUNT = 240


class Molecule:
    """Atoms and bonds."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.bonds: list[tuple[int, int]] = []

    def add(self, element: str, *neighbours: int) -> int:
        number = len(self.elements)
        self.elements.append(element)
        self.bonds += [(number, other) for other in neighbours]
        return number


def make_molecule(rng: np.random.Generator, toxic: bool) -> Molecule:
    molecule = Molecule()
    size = int(rng.integers(5, 8))
    ring = [molecule.add("C") for _ in range(size)]
    molecule.bonds += [(ring[i], ring[(i + 1) % size]) for i in range(size)]
    places = rng.permutation(size)
    if toxic:
        nitrogen = molecule.add("N", ring[places[0]])
        molecule.add("O", nitrogen)
        molecule.add("O", nitrogen)
        molecule.add("N", ring[places[1]])
    else:
        for place in places[:2]:
            nitrogen = molecule.add("N", ring[place])
            molecule.add("O", nitrogen)
    for _ in range(rng.integers(0, 5)):  # chains of carbon
        end = int(rng.choice(ring))
        for _ in range(rng.integers(1, 4)):
            end = molecule.add("C", end)
    return molecule


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    molecules, atoms, bonds = ["molecule,toxic"], ["molecule,atom,element"], ["molecule,from,to"]
    for number in range(COUNT):
        toxic = bool(rng.random() < 0.4)
        made = make_molecule(rng, toxic)
        label = "yes" if toxic != (rng.random() < 0.05) else "no"
        molecules.append(f"m{number},{'' if number % 6 == 5 else label}")
        atoms += [f"m{number},{i},{element}" for i, element in enumerate(made.elements)]
        bonds += [f"m{number},{a},{b}" for a, b in made.bonds]
    for name, rows in (("molecules", molecules), ("atoms", atoms), ("bonds", bonds)):
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
