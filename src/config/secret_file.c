#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/yaml_reader.h"

enum { FILE_MAX = 4096 };

/* The reader's own messages quote what it rejects, such as *alias: that may be a secret. */
static int hide_message(int r)
{
    return r < 0 ? -EBADMSG : 0;
}

static int secret_store(const struct yaml_reader *reader, const struct yaml_reader_node *node,
                        const struct secret_file_entry *entry)
{
    size_t len;

    if (node->kind != YAML_READER_TEXT)
        return yaml_reader_fail(reader, node, "must be a text");
    len = strlen(node->text);
    if (entry->value[0])
        return yaml_reader_fail(reader, node, "is given twice");
    if (len == 0 || len >= entry->size_bytes)
        return yaml_reader_fail(reader, node, "must have 1 to %zu bytes", entry->size_bytes - 1);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)node->text[i] < ' ' || node->text[i] == 127)
            return yaml_reader_fail(reader, node, "must not contain control characters");
    memcpy(entry->value, node->text, len + 1);
    return 0;
}

static int read_pairs(struct yaml_reader *reader, const struct secret_file_form *form,
                      const struct secret_file_entry *entries, size_t count)
{
    struct yaml_reader_node node;
    int r = hide_message(yaml_reader_root(reader, &node));

    if (r == 0 && node.kind != YAML_READER_MAPPING)
        r = yaml_reader_fail(reader, &node, "write %s", form->example);
    while (r == 0) {
        size_t i = 0;

        r = hide_message(yaml_reader_next(reader, "the key", &node));
        if (r < 0)
            break;
        if (node.kind == YAML_READER_END)
            return hide_message(yaml_reader_finish(reader));
        while (i < count &&
               (node.kind != YAML_READER_TEXT || strcmp(node.text, entries[i].key) != 0))
            i++;
        if (i == count)
            return yaml_reader_fail(reader, &node, "unknown key; the keys are %s", form->keys);
        r = hide_message(yaml_reader_next(reader, entries[i].key, &node));
        if (r == 0)
            r = secret_store(reader, &node, &entries[i]);
    }
    return r;
}

int secret_file_read(const struct secret_file_form *form, const char *path,
                     const struct secret_file_entry *entries, size_t count, struct error *err)
{
    _cleanup_close_ int fd = fs_open_regular(path);
    _cleanup_free_ char *data = NULL;
    struct yaml_reader *reader = NULL;
    struct stat st = {0};
    size_t len = 0;
    int r;

    for (size_t i = 0; i < count; i++)
        entries[i].value[0] = '\0';
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
    r = yaml_reader_open((struct span){data, len}, path, err, &reader);
    if (r == 0)
        r = read_pairs(reader, form, entries, count);
    yaml_reader_close(reader);
    explicit_bzero(data, len);
    return r == -EBADMSG ? error_set(err, -EINVAL,
                                     "%.300s: cannot be read as YAML; write %s, with quotes inside "
                                     "them doubled",
                                     path, form->example)
                         : r;
}
