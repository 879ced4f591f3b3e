/* Replies of the Kubernetes API: a page, an error, and the lines of a watch, in pieces of the size
 * of the first byte. Any bytes yield an error or whole entries. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../tests/unit/identity_checks.h"
#include "core/lines.h"
#include "core/macros.h"
#include "fetcher/kubernetes/kubernetes_pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_MAX = 512 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_page(struct span text)
{
    struct kubernetes_page page;
    struct container_list list;
    char why[32];
    int r;

    container_list_init(&list);
    r = kubernetes_parse_list(text, &list, &page);
    check(r == 0 || r == -EBADMSG);
    check(are_valid_containers(&list));
    if (r == 0)
        check(page.version[0] && memchr(page.version, '\0', sizeof(page.version)) &&
              memchr(page.next, '\0', sizeof(page.next)));
    container_list_done(&list);
    kubernetes_parse_error(text, why, sizeof(why));
    check(strlen(why) < sizeof(why));
}

static int take_line(void *context, struct span line)
{
    char version[KUBERNETES_VERSION_BYTES] = "1";
    struct error err = {""};
    struct container_list list;
    int r;

    check(line.len <= LINE_MAX && (line.len == 0 || !memchr(line.data, '\n', line.len)));
    *(size_t *)context += line.len + 1;
    container_list_init(&list);
    r = kubernetes_parse_event(line, &list, version, &err);
    check(r == 0 || r == -EBADMSG ||
          (err.text[0] && (r == -ESTALE || r == -EACCES || r == -EREMOTEIO)));
    check(version[0] && memchr(version, '\0', sizeof(version)));
    check(are_valid_containers(&list));
    container_list_done(&list);
    return 0;
}

static void check_stream(struct span stream, size_t piece_bytes)
{
    size_t taken = 0, given = 0;
    struct lines lines;
    int r = 0;

    lines_init(&lines, LINE_MAX);
    while (given < stream.len && r == 0) {
        struct span piece = {stream.data + given, MIN(piece_bytes, stream.len - given)};

        r = lines_feed(&lines, piece, take_line, &taken);
        given += piece.len;
    }
    check(r == 0 || r == -EFBIG);
    check(r < 0 || taken + lines.begun.len == given);
    lines_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    check_page(text);
    check_stream(text, (size_t)data[0] + 1);
    return 0;
}
