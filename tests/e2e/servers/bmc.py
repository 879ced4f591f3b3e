"""A BMC for QEMU's ipmi-bmc-extern, which speaks the protocol for virtual machines of OpenIPMI's lanserv
(hw/ipmi/ipmi_bmc_extern.c): bytes with a checksum, ended by 0xa0; 0xa1 ends what is for the BMC itself."""
import socket
import struct
import threading

MESSAGE_END, COMMAND_END, ESCAPE = 0xA0, 0xA1, 0xAA
GET_DEVICE_ID, GET_POWER_READING = (0x06, 0x01), (0x2C, 0x02)
UNKNOWN_COMMAND = b"\xc1"
# Of IPMI 2.0, by nobody.
DEVICE_ID = bytes([0, 0x20, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0])


def power_reading(watts):
    """As OpenBMC answers: no statistics, no time stamp, not active."""
    return struct.pack("<BB4HIIB", 0, 0xDC, watts, watts, watts, watts, 0, 0, 0)


def pack(message):
    message += bytes([-sum(message) & 0xFF])
    packed = b""
    for byte in message:
        packed += bytes([ESCAPE, byte | 0x10]) if byte in (MESSAGE_END, COMMAND_END, ESCAPE) else bytes([byte])
    return packed + bytes([MESSAGE_END])


class Bmc:
    """For a with statement. `power` is the answer to GET_POWER_READING, None for none at all; `asked` is what was in
    the questions."""

    def __init__(self, path, power):
        self.path, self.power, self.asked = path, power, []

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self.listener.close()
        self.thread.join(10)

    @property
    def device(self):
        # With `reconnect` QEMU connects once the machine is made; without, before, and crashes (7.2).
        return ("-chardev", f"socket,id=bmc,path={self.path},reconnect=1", "-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc",
                "-device", "isa-ipmi-kcs,bmc=bmc0")

    def serve(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        message, escaped = b"", False
        with connection:
            while received := connection.recv(4096):
                for byte in received:
                    if byte == MESSAGE_END and (answer := self.answer(message[:-1])):
                        connection.sendall(pack(answer))
                    if byte in (MESSAGE_END, COMMAND_END):
                        message = b""
                    elif byte != ESCAPE:
                        message += bytes([byte & ~0x10 if escaped else byte])
                    escaped = byte == ESCAPE

    def answer(self, message):
        sequence, function, command = message[:3]
        question = (function >> 2, command)
        if question == GET_DEVICE_ID:
            data = DEVICE_ID
        elif question == GET_POWER_READING:
            self.asked.append(message[3:])
            data = self.power
        else:
            data = UNKNOWN_COMMAND
        return data and bytes([sequence, function | 4, command]) + data
