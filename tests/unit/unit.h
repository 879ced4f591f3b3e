/* What every unit test includes: cmocka with the headers that it wants before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "manual_clock.h"
