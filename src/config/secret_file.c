#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "config/yaml_fields.h"
#include "core/fs.h"
#include "core/macros.h"

enum { FILE_MAX = 4096 };

static int set_secret(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    const struct secret_file_entry *entry = field->details;
    const struct secret_file_entry **wrong = yaml->target;
    size_t len = strlen(value->text);

    *wrong = entry;
    if (len == 0 || len >= entry->size_bytes)
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value->text[i] < ' ' || value->text[i] == 127)
            return -EINVAL;
    memcpy(entry->value, value->text, len + 1);
    *wrong = NULL;
    return 0;
}

/* The position ("LINE:COLUMN: ") in a message of the YAML reader. The rest may quote a secret. */
static struct span find_position(const struct error *detail, const char *path)
{
    const char *at =
        strncmp(detail->text, path, strlen(path)) == 0 ? detail->text + strlen(path) : "";
    size_t len = at[0] == ':' ? strspn(at, "0123456789:") : 0;

    return (struct span){at, len};
}

int secret_file_parse(const struct secret_file_form *form, struct span text, const char *path,
                      const struct secret_file_entry *entries, size_t count, struct error *err)
{
    const struct secret_file_entry *wrong = NULL;
    struct yaml_field fields[YAML_FIELDS_MAX] = {0};
    struct error detail = {""};
    struct span position;
    struct yaml_fields yaml = {
        .manual = "", .target = &wrong, .fields = fields, .field_count = count, .no_mapping = ""};

    for (size_t i = 0; i < count; i++) {
        entries[i].value[0] = '\0';
        fields[i] = (struct yaml_field){entries[i].key, set_secret, .details = &entries[i]};
    }
    if (yaml_fields_parse(&yaml, text, path, &detail) == 0)
        return 0;
    position = find_position(&detail, path);
    if (position.len == 0)
        position = span_of(":");
    if (wrong)
        error_set(err, -EINVAL, "%.300s%.*s %s must have 1 to %zu bytes, and no control characters",
                  path, (int)position.len, position.data, wrong->key, wrong->size_bytes - 1);
    else
        error_set(
            err, -EINVAL,
            "%.300s%.*s is not YAML with the keys %s, each once; write %s, with quotes inside "
            "them doubled",
            path, (int)position.len, position.data, form->keys, form->example);
    explicit_bzero(&detail, sizeof(detail));
    return -EINVAL;
}

int secret_file_read(const struct secret_file_form *form, const char *path,
                     const struct secret_file_entry *entries, size_t count, struct error *err)
{
    _cleanup_close_ int fd = fs_open_regular(path);
    _cleanup_free_ char *data = NULL;
    struct stat st = {0};
    size_t len = 0;
    int r;

    if (fd < 0)
        return error_set(err, fd, "%s %.300s: cannot be opened: %s", form->flag, path,
                         fs_strerror(fd));
    if (fstat(fd, &st) < 0 || st.st_mode & 077)
        return error_set(err, -EACCES,
                         "%s %.300s: contains %s, but its mode %04o gives access to others than "
                         "its owner; chmod 600 it (in a pod: defaultMode: 0400)",
                         form->flag, path, form->contents, (unsigned)(st.st_mode & 07777));
    r = fs_read_fd(fd, FILE_MAX, &data, &len);
    if (r < 0)
        return error_set(err, r, "%s %.300s: cannot be read: %s", form->flag, path, strerror(-r));
    r = secret_file_parse(form, (struct span){data, len}, path, entries, count, err);
    explicit_bzero(data, len);
    return r;
}
