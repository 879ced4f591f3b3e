#include "cli/check_ipmi.h"

#include <errno.h>

#include "core/clock.h"
#include "sources/bmc/ipmi.h"

static const char *remedy_for(int error)
{
    switch (error) {
    case -ENODEV:
        return "not needed without a BMC; otherwise load its driver: modprobe ipmi_si (or "
               "ipmi_ssif) and modprobe ipmi_devintf; give a container the device "
               "(--device=/dev/ipmi0)";
    case -EACCES:
        return "run as root, or let this user read it: a udev rule "
               "KERNEL==\"ipmi[0-9]*\", GROUP=\"...\", MODE=\"0640\"";
    case -EOPNOTSUPP:
        return "none: this BMC does not offer it; its power may be known by Redfish, hwmon or RAPL";
    case -ENODATA:
        return "enable power measurement in the BMC's settings";
    case -ETIMEDOUT:
        return "try again; if it stays silent, reset the BMC (ipmitool mc reset cold)";
    default:
        return "try again";
    }
}

void check_ipmi(struct report *report, const struct host *host)
{
    struct ipmi_device device;
    struct dcmi_power power;
    struct error err = {""};
    int r;

    ipmi_device_init(&device, &ipmi_calls_system, &clock_system);
    r = ipmi_device_open(&device, host, &err);
    if (r == 0)
        r = ipmi_ask_power(&device, &power, &err);
    ipmi_device_close(&device);
    report->meters += r == 0;
    if (r == 0)
        report_add(report, "ipmi", VERDICT_OK, NULL, "the BMC tells the node's power by DCMI: %u W",
                   (unsigned)power.current_w);
    else
        report_add(report, "ipmi",
                   r == -ENODEV || r == -EOPNOTSUPP ? VERDICT_MISSING : VERDICT_LIMITED,
                   remedy_for(r), "%s", err.text);
}
