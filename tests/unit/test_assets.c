/* net/assets: which file of the page a request gets, and whether the browser has it already. */
#include "unit.h"

#include "core/macros.h"
#include "net/assets.h"

extern const struct http_asset page_assets[];
extern const size_t page_assets_len;

static void only_an_exact_path_is_an_asset(void **state)
{
    static const struct http_asset assets[] = {{.path = "/page/a"}, {.path = "/page/b"}};

    (void)state;
    assert_ptr_equal(assets_find(assets, ARRAY_SIZE(assets), "/page/b"), &assets[1]);
    assert_null(assets_find(assets, ARRAY_SIZE(assets), "/page/"));
    assert_null(assets_find(assets, ARRAY_SIZE(assets), "/page/ab"));
    assert_null(assets_find(assets, ARRAY_SIZE(assets), ""));
    assert_null(assets_find(NULL, 0, "/page/a"));
}

static void if_none_match_is_a_list_of_weak_or_strong_tags_or_a_star(void **state)
{
    static const struct {
        const char *header;
        bool matches;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"\"1\"", true},
        {"W/\"1\"", true},
        {"*", true},
        {"\"0\", \"1\"", true},
        {" \"0\" ,\t\"1\" ", true},
        {"\"1-gzip\"", false},
        {"1", false},
        {"\"1", false},
        {",,", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(assets_match_etag(cases[i].header, "\"1\""), cases[i].matches);
}

static void every_file_of_the_page_has_two_encodings_and_a_tag_for_each(void **state)
{
    (void)state;
    assert_true(page_assets_len > 5);
    for (size_t i = 0; i < page_assets_len; i++) {
        const struct http_asset *asset = &page_assets[i];

        assert_true(asset->variants[PAGE_IDENTITY].body.len > 0);
        assert_memory_equal(asset->variants[PAGE_GZIP].body.data, "\x1f\x8b", 2);
        assert_string_not_equal(asset->variants[PAGE_IDENTITY].etag,
                                asset->variants[PAGE_GZIP].etag);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(asset->variants[PAGE_IDENTITY].etag,
                                    page_assets[other].variants[PAGE_IDENTITY].etag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_an_exact_path_is_an_asset),
        cmocka_unit_test(if_none_match_is_a_list_of_weak_or_strong_tags_or_a_star),
        cmocka_unit_test(every_file_of_the_page_has_two_encodings_and_a_tag_for_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
