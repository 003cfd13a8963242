"""What the hardware can hold, written down a second time and apart from the driver's catalog: the cases judge the
scheduler by it."""

import itertools
import re

WHOLE = "whole"
# Amounts: AI cores, AI CPUs, memory in MiB, vpc, venc, vdec, jpegd, jpege. None limits nothing.
_NO_MEDIA = (0, 0, 0, 0, 0)
_ANY_MEDIA = (None,) * 5


class Product:
    def __init__(self, budget, templates, vgroups=0):
        """vgroups: groups of two AI cores; what needs less shares one with its like, the rest has its own."""
        self.budget, self.templates, self.vgroups = budget, templates, vgroups


PRODUCTS = {
    "8x910B4": Product((20, 7, 28672, 9, 0, 2, 24, 4), {
        "vir05_1c_8g": (5, 1, 7168, 2, 0, 0, 6, 1),
        "vir10_3c_16g": (10, 3, 14336, 4, 0, 1, 12, 2),
        "vir10_3c_16g_nm": (10, 3, 14336, *_NO_MEDIA),
        "vir10_4c_16g_m": (10, 4, 14336, 9, 0, 2, 24, 4)}),
    "8x910B3": Product((20, 7, 61440, 9, 0, 2, 24, 4), {
        "vir05_1c_16g": (5, 1, 15360, 2, 0, 0, 6, 1),
        "vir10_3c_32g": (10, 3, 30720, 4, 0, 1, 12, 2)}),
    "4x310P3": Product((8, 7, 24576, 12, 3, 12, 16, 8), {
        "vir01": (1, 1, 3072, 1, 0, 1, 2, 1),
        "vir02": (2, 2, 6144, 3, 1, 3, 4, 2),
        "vir02_1c": (2, 1, 6144, 3, 0, 3, 4, 2),
        "vir04": (4, 4, 12288, 6, 2, 6, 8, 4),
        "vir04_3c": (4, 3, 12288, 6, 1, 6, 8, 4),
        "vir04_3c_ndvpp": (4, 3, 12288, *_NO_MEDIA),
        "vir04_4c_dvpp": (4, 4, 12288, 12, 3, 12, 16, 8)}, vgroups=4),
    # Whoever makes a vNPU there does not name AI CPUs, so they limit nothing.
    "8x910A": Product((32, None, 32768, *_ANY_MEDIA), {
        "vir02": (2, 0, 2048, *_NO_MEDIA),
        "vir04": (4, 0, 4096, *_NO_MEDIA),
        "vir08": (8, 0, 8192, *_NO_MEDIA),
        "vir16": (16, 0, 16384, *_NO_MEDIA)}),
    "16xA3": Product((), {}),
}
_MAX_VNPUS = 16


class Chip:
    """A chip, or an A3 module, and what is on it."""

    def __init__(self, product):
        self._product = product
        self.parts = []  # (template, vGroups)

    def places(self, wish):
        """The vGroups that the wish could take, first choice first; one empty choice without vGroups."""
        product, held = self._product, [template for template, _ in self.parts]
        if wish == WHOLE:
            return [()] if not held else []
        if WHOLE in held or len(held) == _MAX_VNPUS:
            return []
        amounts = [product.templates[template] for template in (*held, wish)]
        if any(limit is not None and sum(column) > limit for limit, column in zip(product.budget, zip(*amounts))):
            return []
        if not product.vgroups:
            return [()]
        cores = product.templates[wish][0]
        used = [0] * product.vgroups
        for template, groups in self.parts:
            for group in groups:
                used[group] += min(product.templates[template][0], 2)
        if cores < 2:
            return [(group,) for group, taken in enumerate(used) if taken + cores <= 2]
        return [groups for groups in itertools.combinations(range(product.vgroups), cores // 2)
                if not any(used[group] for group in groups)]

    def problem(self):
        """What the hardware could not hold of the parts, however they are placed; "" if nothing."""
        product, held = self._product, [template for template, _ in self.parts]
        if WHOLE in held:
            return "" if len(held) == 1 else f"a whole chip beside others: {held}"
        if len(held) > _MAX_VNPUS:
            return f"{len(held)} vNPUs"
        for place, limit in enumerate(product.budget):
            total = sum(product.templates[template][place] for template in held)
            if limit is not None and total > limit:
                return f"amount {place} is {total} of {limit}: {held}"
        if product.vgroups:
            cores = [product.templates[template][0] for template in held]
            needed = -(-cores.count(1) // 2) + sum(count // 2 for count in cores)
            if needed > product.vgroups:
                return f"{needed} vGroups: {held}"
        return ""


class Chips:
    """The chips of a node in the order of their numbers."""

    def __init__(self, kind, device_names=()):
        """Holds the devices of these names."""
        self.product = PRODUCTS[kind]
        self.module_size = 2 if kind.endswith("A3") else 1
        count = int(kind.split("x")[0])
        self.chips = {first: Chip(self.product) for first in range(0, count, self.module_size)}
        for name in device_names:
            chip, template, index = self.parse(name)
            self.chips[chip].parts.append((template, self._vgroups(template, index)))

    def parse(self, name):
        """(chip, template or WHOLE, index) of a device name."""
        if match := re.fullmatch(r"npu-(\d+)-([a-z].*)-(\d+)", name):
            return int(match[1]), match[2].replace("-", "_"), int(match[3])
        whole = [int(number) for number in name.removeprefix("npu-").split("-")]
        assert len(whole) == self.module_size and whole[-1] == whole[0] + self.module_size - 1, name
        return whole[0], WHOLE, 0

    def _vgroups(self, template, index):
        """A device for each place that a template may have: that of this index."""
        if template == WHOLE or not self.product.vgroups:
            return ()
        cores = self.product.templates[template][0]
        if cores < 2:
            return (index // 2,)
        return list(itertools.combinations(range(self.product.vgroups), cores // 2))[index]

    def fits(self, wish):
        return any(chip.places(wish) for chip in self.chips.values())

    def put(self, wish):
        """On the first chip that has room; False if there is none."""
        for chip in self.chips.values():
            if places := chip.places(wish):
                chip.parts.append((wish, places[0]))
                return True
        return False

    def problems(self):
        return [f"chip {number}: {problem}" for number, chip in self.chips.items() if (problem := chip.problem())]

    def wishes(self, rng, misses=3):
        """Random wishes until nothing fits any more, put one by one; some of them did not fit."""
        kinds, wishes = [WHOLE, *self.product.templates], []
        while misses:
            wishes.append(rng.choice(kinds))
            misses -= not self.put(wishes[-1])
        for kind in kinds:
            while self.fits(kind):
                wishes.append(kind)
                self.put(kind)
        return wishes
