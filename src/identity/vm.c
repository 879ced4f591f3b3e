#include "identity/vm.h"

#include <ctype.h>
#include <stdbool.h>

/* "guest=NAME,debug-threads=on" or "NAME,..."; a comma of the name is written twice. */
static void take_name(struct span value, char *name, size_t size_bytes)
{
    static const char guest[] = "guest=";
    size_t len = 0;

    if (value.len >= strlen(guest) && memcmp(value.data, guest, strlen(guest)) == 0)
        value = (struct span){value.data + strlen(guest), value.len - strlen(guest)};
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] == ',' && (i + 1 == value.len || value.data[++i] != ','))
            break;
        if (len + 1 == size_bytes)
            return; /* a name that is cut is another name */
        name[len++] = value.data[i];
    }
    name[len] = '\0';
}

static bool is_uuid(struct span text)
{
    if (text.len != 36)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text.data[i] != '-' : !isxdigit((unsigned char)text.data[i]))
            return false;
    }
    return true;
}

void vm_parse_cmdline(struct span cmdline, struct vm *ret_vm)
{
    struct vm vm = {0};

    while (cmdline.len > 0) {
        struct span argument = span_cut(&cmdline, '\0');

        if (span_equals(argument, "-name")) {
            take_name(span_cut(&cmdline, '\0'), vm.name, sizeof(vm.name));
        } else if (span_equals(argument, "-uuid")) {
            struct span value = span_cut(&cmdline, '\0');

            if (is_uuid(value))
                memcpy(vm.uuid, value.data, value.len);
        }
    }
    *ret_vm = vm;
}
