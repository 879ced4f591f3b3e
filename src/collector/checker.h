/*
 * Checker: the process that looks at the sources of this node, as `wattribute check` does, for
 * /api/v1/check. Drivers hang and crash, and some libraries (DCGM's) serve one user in a process:
 * in the collector's that would cost joules.
 */
#pragma once

/* The hidden verb `checker`: reads its job, sends its findings, and ends. Returns the exit status.
 */
int checker_main(void);
