/* Quantities for people: three digits and a prefix. NAN, which is unknown, is "". */
#pragma once

enum { QUANTITY_BYTES = 16 };

/* "12.3 kJ", "340 mg", "0 W", "<1 mJ", ">999 EJ". The unit has up to 3 bytes. */
void quantity_si(double value, const char *unit, char text[QUANTITY_BYTES]);

/* "18.2 GiB" */
void quantity_bytes(double bytes, char text[QUANTITY_BYTES]);

/* One decimal, for a column of watts: "172.9"; from 100,000 on as above, without a unit. */
void quantity_watts(double watts, char text[QUANTITY_BYTES]);

/* "41.9%", ">999%" */
void quantity_percent(double part, double whole, char text[QUANTITY_BYTES]);

/* Two decimals below 10, one below 100: "0.02", "12.3", "128". */
void quantity_cores(double cores, char text[QUANTITY_BYTES]);

/* "0.0012", "12.34", "<0.0001" */
void quantity_cost(double cost, char text[QUANTITY_BYTES]);
