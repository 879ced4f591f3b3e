"""The books of an exporter, page by page."""
from harness import HARDWARE_ENERGY, METER_ENERGY

PENDING = "wattribute_energy_pending_joules"
RESETS = "wattribute_source_resets_total"


class Books:
    """Checks each page by itself, by the one before, and by the hardware's own counters: what is booked or pending is
    what they have counted since the first page, no more and no less.

    `truth` gives the joules that meters have counted in all, by (meter, meter_id), if the test knows: never is there
    more in the books, and by `check_all` no less, unless the page says that a count was lost."""

    def __init__(self, test, truth=dict):
        self.test, self.pages, self.truth = test, 0, truth
        self.booked, self.offsets, self.began = {}, {}, truth()
        self.lost = dict.fromkeys(self.began, (0, 0))  # how often, and how much

    def check(self, page):
        self.test.assert_balanced(page)
        self.pages += 1
        for labels, energy in page.values(METER_ENERGY):
            meter = labels["meter"], labels["meter_id"]
            self.test.assertGreaterEqual(energy, self.booked.get(meter, 0), meter)
            self.booked[meter] = energy
            # One that is lost has none of them, nor has one of which there was no memory to know.
            if page.values(PENDING, **labels) and page.values(HARDWARE_ENERGY, **labels):
                offset = page.value(HARDWARE_ENERGY, **labels) - energy - page.value(PENDING, **labels)
                self.test.assertEqual(self.offsets.setdefault(meter, offset), offset, meter)
        for meter, missing in self.missing(page).items():
            self.test.assertGreaterEqual(missing, 0, meter)
        return page

    def missing(self, page):
        """What each meter has counted and the page does not have."""
        return {(meter, ident): counted - self.began[meter, ident]
                - page.sum(METER_ENERGY, meter=meter, meter_id=ident) - page.sum(PENDING, meter=meter, meter_id=ident)
                for (meter, ident), counted in self.truth().items()}

    def check_all(self, page):
        """When every meter has been read since it moved."""
        self.check(page)
        for meter, missing in self.missing(page).items():
            resets = page.sum(RESETS, meter=meter[0], meter_id=meter[1])
            if resets == self.lost[meter][0]:
                self.test.assertEqual(self.lost[meter][1], missing, meter)
            self.lost[meter] = resets, missing
        return page

    def total(self):
        return sum(self.booked.values())
