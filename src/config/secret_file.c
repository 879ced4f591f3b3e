#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/yaml_reader.h"

enum { FILE_MAX = 4096 };

/* The reader's own messages quote what it does not take, such as *alias: that may be a secret. */
static int hide(int r)
{
    return r < 0 ? -EBADMSG : 0;
}

static int store(const struct yaml_reader *reader, const struct yaml_reader_node *node,
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
            return yaml_reader_fail(reader, node, "must not have control characters in it");
    memcpy(entry->value, node->text, len + 1);
    return 0;
}

static const struct secret_file_entry *find_entry(const struct yaml_reader_node *key,
                                                  const struct secret_file_entry *entries,
                                                  size_t count)
{
    for (size_t i = 0; i < count && key->kind == YAML_READER_TEXT; i++)
        if (strcmp(key->text, entries[i].key) == 0)
            return &entries[i];
    return NULL;
}

static int read_pairs(struct yaml_reader *reader, const struct secret_file_form *form,
                      const struct secret_file_entry *entries, size_t count)
{
    const struct secret_file_entry *entry;
    struct yaml_reader_node node;
    int r = hide(yaml_reader_root(reader, &node));

    if (r < 0)
        return r;
    if (node.kind != YAML_READER_MAPPING)
        return yaml_reader_fail(reader, &node, "write %s", form->example);
    for (;;) {
        r = hide(yaml_reader_next(reader, "the key", &node));
        if (r < 0)
            return r;
        if (node.kind == YAML_READER_END)
            return hide(yaml_reader_finish(reader));
        entry = find_entry(&node, entries, count);
        if (!entry)
            return yaml_reader_fail(reader, &node, "not a key of this file: it has %s", form->keys);
        r = hide(yaml_reader_next(reader, entry->key, &node));
        if (r == 0)
            r = store(reader, &node, entry);
        if (r < 0)
            return r;
    }
}

int secret_file_parse(const struct secret_file_form *form, struct span text, const char *path,
                      const struct secret_file_entry *entries, size_t count, struct error *err)
{
    struct yaml_reader *reader = NULL;
    int r;

    for (size_t i = 0; i < count; i++)
        entries[i].value[0] = '\0';
    r = yaml_reader_open(text, path, err, &reader);
    if (r == 0)
        r = read_pairs(reader, form, entries, count);
    yaml_reader_close(reader);
    if (r == -EBADMSG)
        r = error_set(err, -EINVAL,
                      "%.300s: cannot be read as YAML; write %s, with a quote in them doubled",
                      path, form->quoted);
    return r;
}

static int check_mode(const struct secret_file_form *form, int fd, const char *path,
                      struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_set(err, -errno, "%s %.300s: %s", form->flag, path, strerror(errno));
    if (st.st_mode & 077)
        return error_set(err, -EACCES,
                         "%s %.300s: others than its owner may use it (mode %04o), and it has %s "
                         "in it; chmod 600 it (in a pod: defaultMode: 0400)",
                         form->flag, path, (unsigned)(st.st_mode & 07777), form->contents);
    return 0;
}

int secret_file_read(const struct secret_file_form *form, const char *path,
                     const struct secret_file_entry *entries, size_t count, struct error *err)
{
    _cleanup_close_ int fd = fs_open_regular(path);
    _cleanup_free_ char *data = NULL;
    size_t len = 0;
    int r;

    if (fd < 0)
        return error_set(err, fd, "%s %.300s: cannot be opened: %s", form->flag, path,
                         fs_strerror(fd));
    r = check_mode(form, fd, path, err);
    if (r < 0)
        return r;
    r = fs_read_fd(fd, FILE_MAX, &data, &len);
    if (r < 0)
        return error_set(err, r, "%s %.300s: cannot be read: %s", form->flag, path, strerror(-r));
    r = secret_file_parse(form, (struct span){data, len}, path, entries, count, err);
    explicit_bzero(data, len);
    return r;
}
