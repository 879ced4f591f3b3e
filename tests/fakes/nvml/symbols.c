/* The names of the functions, as a scenario and a test spell them. */
#include "symbols.h"

#include <string.h>

int symbol_find(const char *name)
{
    static const char *const names[] = {
#define F(type, symbol, params) #symbol,
        NVML_SYMBOLS(F)
#undef F
    };

    for (int i = 0; i < SYMBOL_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}
