/* `wattribute report`: who used how much of a fleet, from a Prometheus-compatible server. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/report_progress.h"
#include "config/secret_file.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/macros.h"
#include "process/descriptors.h"
#include "report/report_output.h"

enum { SECRET_BYTES = 256, OUTPUT_MAX_BYTES = 1 << 30, DAY_S = 86400, LIFE_DAYS = 31 };

static_assert(sizeof(enum names_by) == sizeof(unsigned), "--by is stored as unsigned");

static int read_credentials(const char *path, char user[SECRET_BYTES], char password[SECRET_BYTES],
                            struct error *err)
{
    static const struct secret_file_form form = {
        .flag = "--server.credentials-file",
        .contents = "a password",
        .keys = "username and password",
        .example = "two lines, username: '...' and password: '...'",
    };
    const struct secret_file_entry entries[] = {{"username", user, SECRET_BYTES},
                                                {"password", password, SECRET_BYTES}};
    int r = secret_file_read(&form, path, entries, ARRAY_SIZE(entries), err);

    if (r == 0 && (user[0] == '\0' || password[0] == '\0'))
        r = error_set(err, -EINVAL, "%.300s: must have both username and password", path);
    return r;
}

static int open_server(const struct options *options, int64_t now_s, struct server **ret_server,
                       struct error *err)
{
    char user[SECRET_BYTES] = "", password[SECRET_BYTES] = "";
    const char *credentials = options->report.credentials_path;
    int r = 0;

    if (credentials && options->report.token_path)
        return error_set(err, -EINVAL,
                         "--server.token-file and --server.credentials-file exclude each other");
    if (credentials)
        r = read_credentials(credentials, user, password, err);
    if (r == 0)
        r = server_open(&(struct server_options){.url = options->report.server_url,
                                                 .ca_path = options->report.ca_path,
                                                 .token_path = options->report.token_path,
                                                 .user = credentials ? user : NULL,
                                                 .password = credentials ? password : NULL,
                                                 .tenant = options->report.tenant,
                                                 .is_insecure = options->report.is_insecure,
                                                 .keep_path = options->report.keep_path,
                                                 .now_s = now_s},
                        ret_server, err);
    explicit_bzero(user, sizeof(user));
    explicit_bzero(password, sizeof(password));
    return r;
}

static int read_request(const struct cli *cli, int64_t now_s, struct collect_options *request,
                        struct error *err)
{
    const struct options *options = &cli->options;
    bool is_life = options->report.job || options->report.pod;

    if (options->report.job && options->report.pod)
        return error_set(err, -EINVAL, "--job and --pod exclude each other");
    if (options->report.csv && options->json)
        return error_set(err, -EINVAL, "--csv and --json exclude each other");
    if (options->report.step_us % USEC_PER_SEC != 0)
        return error_set(err, -EINVAL, "--resolution: only whole seconds are possible");
    request->select = options->report.select ? options->report.select : "";
    request->by = (enum names_by)options->report.by;
    request->is_recorded = options->report.is_recorded;
    request->job = options->report.job;
    request->pod = options->report.pod;
    request->step_s = (int64_t)(options->report.step_us / USEC_PER_SEC);
    request->parallel = (unsigned)options->report.parallel;
    if (is_life && !options_is_given(options, "period")) {
        request->period = (struct period){now_s - (int64_t)LIFE_DAYS * DAY_S, now_s, true};
        return 0;
    }
    return period_parse(span_of(options->report.period), now_s, &request->period, err);
}

/* Rather none than a part of a page. */
static int write_whole(int fd, const struct buffer *page)
{
    int r = fs_write_all(fd, page->data, page->len);

    if (r < 0 && ftruncate(fd, 0) < 0 && errno != EINVAL) /* EINVAL: no plain file */
        return -errno;
    return r;
}

static int write_page(const char *path, const struct buffer *page, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int r = fd < 0 ? -errno : write_whole(fd, page);

    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    return r < 0 ? error_set(err, r, "cannot write '%.300s': %s", path, strerror(-r)) : 0;
}

static int print_report(const struct options *options, const struct collected *collected,
                        const struct report_source *source)
{
    const char *path = options->report.html_path;
    struct buffer text, page;
    struct error err;
    int status;

    buffer_init(&text, OUTPUT_MAX_BYTES);
    buffer_init(&page, OUTPUT_MAX_BYTES);
    if (options->json)
        report_json(collected, source, &text);
    else if (options->report.csv)
        report_csv(collected, &text);
    else
        report_text(collected, source, &text);
    if (path)
        report_html(collected, source, &page);
    if (buffer_failed(&text) || buffer_failed(&page)) {
        cli_print_error(&(struct error){"out of memory: there is no report"});
        status = EXIT_FAILED;
    } else {
        status = cli_print(&text);
        if (path && write_page(path, &page, &err) < 0) {
            cli_print_error(&err);
            status = EXIT_FAILED;
        }
    }
    buffer_done(&text);
    buffer_done(&page);
    return status;
}

int verb_report(const struct cli *cli)
{
    int64_t now_s = (int64_t)(clock_system.realtime_us(&clock_system) / USEC_PER_SEC);
    struct report_progress progress;
    struct fetch_consumer display = {.show = report_progress_show, .context = &progress};
    struct collect_options request = {.display = &display};
    struct collected collected = {0};
    struct server *server = NULL;
    struct error err = {""};
    int r, status;

    tzset();
    if (descriptors_prepare(&err) < 0 || read_request(cli, now_s, &request, &err) < 0 ||
        open_server(&cli->options, now_s, &server, &err) < 0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    request.server = server;
    report_progress_init(&progress);
    r = collect(&request, &collected, &err);
    report_progress_clear(&progress);
    if (r == 0) {
        status = print_report(&cli->options, &collected,
                              &(struct report_source){.address = server_address(server),
                                                      .version = WATTRIBUTE_VERSION,
                                                      .now_s = now_s});
    } else {
        cli_print_error(&err);
        status = EXIT_FAILED;
    }
    collected_done(&collected);
    server_close(server);
    return status;
}
