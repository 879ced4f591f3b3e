/* emissions/credential: no secret stays in a text, in whatever form a service repeats it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/credential.h"

static void the_secret_becomes_stars(void **state)
{
    static const struct {
        const char *text, *secret, *redacted;
    } cases[] = {
        {"", "s3cret", ""},
        {"no such thing", "s3cret", "no such thing"},
        {"token s3cret is unknown", "s3cret", "token *** is unknown"},
        {"s3cret", "s3cret", "***"},
        {"s3crets3cret-s3cre t", "s3cret", "******-s3cre t"},
        {"S3CRET", "s3cret", "S3CRET"},
        {"any text", "", "any text"},
        {"abab-ababab", "abab", "***-***ab"},
        /* escaped, in capitals and not */
        {"/api?t=a%2Fb%3D%C3%A9.", "a/b=\xc3\xa9", "/api?t=***."},
        {"/api?t=a%2fb%3d%c3%a9.", "a/b=\xc3\xa9", "/api?t=***."},
        {"/api?t=a/b%3D??.", "a/b=\xc3\xa9", "/api?t=***."},
        {"a+b, a%20b, a b", "a b", "***, ***, ***"},
        {"%%%2", "a/b", "%%%2"},
        /* cut at the end */
        {"it says: s3cre", "s3cret", "it says: ***"},
        {"it says: s3cr", "s3cret", "it says: ***"},
        {"it says: s3c", "s3cret", "it says: s3c"},
        {"it says: s3cr%2", "s3cr/et", "it says: ***"},
        {"it says: s3cr%", "s3cr/et", "it says: ***"},
        {"it says: s3cr%4", "s3cr/et", "it says: s3cr%4"},
        {"s3cr in the middle", "s3cret", "s3cr in the middle"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err;

        snprintf(err.text, sizeof(err.text), "%s", cases[i].text);
        credential_redact(&err, cases[i].secret);
        assert_string_equal(err.text, cases[i].redacted);
    }
    credential_redact(NULL, "s3cret");
}

static void a_text_that_grows_is_cut(void **state)
{
    struct error err;

    (void)state;
    memset(err.text, 'a', sizeof(err.text) - 1);
    err.text[sizeof(err.text) - 1] = '\0';
    credential_redact(&err, "a");
    assert_true(strlen(err.text) > 1000 && strlen(err.text) < sizeof(err.text));
    assert_int_equal(strspn(err.text, "*"), strlen(err.text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_secret_becomes_stars),
        cmocka_unit_test(a_text_that_grows_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
