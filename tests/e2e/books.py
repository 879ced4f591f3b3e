"""The books of an exporter, page by page."""
from harness import HARDWARE_ENERGY, METER_ENERGY

PENDING = "wattribute_energy_pending_joules"


class Books:
    """Checks each page by itself, by the one before, and by the hardware's own counters: what is booked or pending is
    what they have counted since the first page, no more and no less."""

    def __init__(self, test):
        self.test, self.pages = test, 0
        self.booked, self.offsets = {}, {}

    def check(self, page):
        self.test.assert_balanced(page)
        self.pages += 1
        for labels, energy in page.values(METER_ENERGY):
            meter = labels["meter"], labels["meter_id"]
            self.test.assertGreaterEqual(energy, self.booked.get(meter, 0), meter)
            self.booked[meter] = energy
            if page.values(PENDING, **labels):  # a meter that is lost has none
                offset = page.value(HARDWARE_ENERGY, **labels) - energy - page.value(PENDING, **labels)
                self.test.assertEqual(self.offsets.setdefault(meter, offset), offset, meter)
        return page

    def total(self):
        return sum(self.booked.values())
