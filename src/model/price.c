#include "model/price.h"

const char *const price_signal_words[PRICE_SIGNALS] = {"unstated", "average", "marginal"};
const char *const price_basis_words[PRICE_BASES] = {"unstated", "lifecycle", "direct"};
