"""A BMC's Redfish service, as far as the node's power needs it: sessions, one chassis that is the node and one that is a
GPU, over TLS. Resources are plain dicts by path and may be changed at any time; `faults` replaces the answer of one."""
import contextlib
import copy
import json
import time
from base64 import b64encode

from servers import https

ROOT = "/redfish/v1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
NODE, GPU = f"{ROOT}/Chassis/Self", f"{ROOT}/Chassis/GPU_0"
SYSTEM = f"{ROOT}/Systems/1"
USER, PASSWORD = "monitor", 'p"ss: wörd #1'


def link(path):
    return {"@odata.id": path}


def collection(*paths):
    return {"Members": [link(path) for path in paths], "Members@odata.count": len(paths)}


class Redfish(https.Service):
    def __init__(self, certificate=None):
        self.requests = []  # (method, path) of each that came
        self.served = []  # (seconds, watts) of each reading that was told
        self.tokens, self.logins, self.deleted = {}, 0, []
        self.faults = {}  # path: function of the request
        self.watts = (600 + 7.25 * i for i in range(100000))  # a new value with each reading
        self.resources = {
            ROOT: {"RedfishVersion": "1.15.0", "Chassis": link(f"{ROOT}/Chassis"), "Links": {"Sessions": link(SESSIONS)}},
            f"{ROOT}/Chassis": collection(GPU, NODE),
            GPU: {"Id": "GPU_0", "ChassisType": "Module", "EnvironmentMetrics": link(f"{GPU}/EnvironmentMetrics")},
            f"{GPU}/EnvironmentMetrics": {"PowerWatts": {"Reading": 72.5}},
            NODE: {"Id": "Self", "ChassisType": "RackMount", "Status": {"State": "Enabled"},
                   "EnvironmentMetrics": link(f"{NODE}/EnvironmentMetrics"),
                   "Links": {"ComputerSystems": [link(SYSTEM)]}},
            f"{NODE}/EnvironmentMetrics": lambda: {"PowerWatts": {"Reading": self.read()},
                                                   "EnergykWh": {"Reading": 10412.7}},
        }
        super().__init__(Request, certificate)

    def read(self):
        watts = next(self.watts)
        self.served.append((time.monotonic(), watts))
        return watts

    def with_supplies(self, *supplies):
        """Instead of EnvironmentMetrics: each is (state, a function or the watts)."""
        del self.resources[NODE]["EnvironmentMetrics"]
        base = f"{NODE}/PowerSubsystem"
        paths = [f"{base}/PowerSupplies/{i}" for i in range(len(supplies))]
        self.resources[NODE]["PowerSubsystem"] = link(base)
        self.resources[base] = {"PowerSupplies": link(f"{base}/PowerSupplies")}
        self.resources[f"{base}/PowerSupplies"] = collection(*paths)
        for path, (state, watts) in zip(paths, supplies):
            self.resources[path] = {"Status": {"State": state}, "Metrics": link(f"{path}/Metrics")}
            self.resources[f"{path}/Metrics"] = lambda watts=watts: {
                "InputPowerWatts": {"Reading": watts() if callable(watts) else watts}}

    def with_power(self, *controls, **more):
        """Instead of EnvironmentMetrics: the deprecated Power."""
        self.resources[NODE].pop("EnvironmentMetrics", None)
        self.resources[NODE]["Power"] = link(f"{NODE}/Power")
        self.resources[f"{NODE}/Power"] = lambda: {"PowerControl": [
            {key: value() if callable(value) else value for key, value in control.items()} for control in controls],
            **more}

    def asked(self, method, path=None):
        return [each for each in list(self.requests) if each[0] == method and path in (None, each[1])]

    def is_allowed(self, headers):
        basic = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return headers["X-Auth-Token"] in self.tokens or headers["Authorization"] == basic


class Request(https.Request):
    def handle_any(self):
        self.bmc, self.resource = self.service, self.path.rstrip("/")
        self.bmc.requests.append((self.command, self.resource))
        if self.resource in self.bmc.faults:
            self.bmc.faults[self.resource](self)
        else:
            self.answer()

    def answer(self):
        if self.command == "POST" and self.resource == SESSIONS:
            self.log_in()
        elif self.resource != ROOT and not self.bmc.is_allowed(self.headers):
            self.refuse(401, "no valid session")
        elif self.command == "DELETE" and self.resource.startswith(SESSIONS + "/"):
            self.bmc.deleted.append(self.resource)
            self.bmc.tokens = {token: path for token, path in self.bmc.tokens.items() if path != self.resource}
            self.reply(b"", 204)
        elif self.command != "GET" or self.resource not in self.bmc.resources:
            self.refuse(404, f"no {self.resource}")
        else:
            self.tell(self.resource)

    def tell(self, resource):
        found = self.bmc.resources[resource]
        found = found() if callable(found) else found
        self.reply(json.dumps({"@odata.id": resource, **copy.deepcopy(found)}).encode())

    def log_in(self):
        self.bmc.logins += 1
        if json.loads(self.body) != {"UserName": USER, "Password": PASSWORD}:
            return self.refuse(401, "wrong user or password")
        token, path = f"token-{self.bmc.logins}", f"{SESSIONS}/{self.bmc.logins}"
        self.bmc.tokens[token] = path
        self.reply(json.dumps({"@odata.id": path}).encode(), 201, {"X-Auth-Token": token, "Location": path})

    def refuse(self, status, message):
        self.reply(json.dumps({"error": {"code": "Base.1.0.GeneralError", "message": "see @Message.ExtendedInfo",
                                         "@Message.ExtendedInfo": [{"Message": message}]}}).encode(), status)

    # --- faults ---

    def truncate(self):
        self.break_off(b'{"PowerWatts": {"Rea')

    def flood(self):
        self.reply(b'{"PowerWatts": {"Reading": 600}, "x": "' + b"x" * (10 << 20) + b'"}')

    def redirect(self):
        """To the same with a slash at its end."""
        if self.path.endswith("/"):
            self.answer()
        else:
            self.reply(b"", 308, {"Location": self.path + "/"})

    def take_time(self):
        """Answers if it was waited for; otherwise the client has hung up, and it is as if nobody had asked."""
        self.connection.settimeout(0.7)  # longer than the front drains its clients
        with contextlib.suppress(TimeoutError):
            self.rfile.read(1)
            return
        self.answer()

    def busy(self):
        self.refuse(503, "the service is starting")
