/* host/program_key: which command lines are the same program. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "host/program_key.h"

static const struct program_secret secret = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

/* A command line with blanks between its arguments. */
static struct program_key key_of(const struct program_secret *with, const char *executable,
                                 const char *line)
{
    char arguments[1024];
    size_t len = strlen(line) + 1;

    assert_true(len <= sizeof(arguments));
    memcpy(arguments, line, len);
    for (size_t i = 0; i < len; i++)
        if (arguments[i] == ' ')
            arguments[i] = '\0';
    return program_key_of(with, span_of(executable), (struct span){arguments, len});
}

/* Computed with another implementation of SipHash-2-4. */
static void the_exact_key_is_siphash_of_executable_and_arguments(void **state)
{
    (void)state;
    assert_int_equal(key_of(&secret, "/usr/bin/python3", "python3 train.py").exact,
                     0x98809373d8643357);
}

static void runs_that_differ_in_values_are_one_program_by_the_coarse_key(void **state)
{
    static const struct {
        const char *executable, *one, *other;
    } cases[] = {
        /* torchrun */
        {"/usr/bin/python3.12",
         "/usr/bin/python3 -u train.py --local-rank=0 --seed 17 --lr 3e-4 --out /scratch/a/run-1",
         "/usr/bin/python3 -u train.py --local-rank=3 --seed 9 --lr 0.001 --out /scratch/b/x"},
        {"/usr/bin/python3.12",
         "python3 /opt/bin/torchrun --nnodes=2 --rdzv-endpoint=10.0.0.1:29500 train.py",
         "python3 /usr/bin/torchrun --nnodes=4 --rdzv-endpoint=10.0.7.9:29501 train.py"},
        /* vLLM */
        {"/usr/bin/python3.11",
         "python3 -m vllm.entrypoints.openai.api_server --model org/chat --port 8000 --seed 1",
         "python3 -m vllm.entrypoints.openai.api_server --model org/chat --port 8001 --seed 2"},
        /* srun starts the program itself; paths of checkpoints differ. */
        {"/home/a/app/simulate", "/home/a/app/simulate --steps 1000 ckpt-0001.h5",
         "/home/a/app/simulate --steps 5000 ckpt-0002.h5"},
        /* Jupyter */
        {"/opt/conda/bin/python3.11",
         "/opt/conda/bin/python -m ipykernel_launcher -f "
         "/root/.local/share/jupyter/runtime/kernel-0b1f2c3d-aaaa-4bbb-8ccc-0123456789ab.json",
         "/opt/conda/bin/python -m ipykernel_launcher -f "
         "/home/u/.local/share/jupyter/runtime/kernel-ffee0011-1234-4321-9abc-ba9876543210.json"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct program_key one = key_of(&secret, cases[i].executable, cases[i].one);
        struct program_key other = key_of(&secret, cases[i].executable, cases[i].other);

        assert_int_not_equal(one.exact, 0);
        assert_int_not_equal(one.exact, other.exact);
        assert_int_equal(one.coarse, other.coarse);
    }
}

static void other_programs_have_other_coarse_keys(void **state)
{
    static const char *const lines[] = {
        "python3 train.py",
        "python3 serve.py",
        "python3 -m torch.distributed.run train.py",
        "python3 train.py --mixed-precision",
        "python3 train.py --model org/chat",
        "python3 train.py --model org/code",
        "python3 train.py large",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(key_of(&secret, "/usr/bin/python3.12", lines[i]).coarse,
                                 key_of(&secret, "/usr/bin/python3.12", lines[k]).coarse);
}

static void a_title_is_not_a_command_line(void **state)
{
    static const char *const titles[] = {"", "VLLM::EngineCore", "nginx: worker process", "12"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
        struct program_key key = key_of(&secret, "/usr/bin/python3.12", titles[i]);

        assert_int_equal(key.exact, 0);
        assert_int_equal(key.coarse, 0);
    }
}

static void another_secret_gives_other_keys(void **state)
{
    static const struct program_secret other = {{1, 2}};
    struct program_key one = key_of(&secret, "/bin/a", "a b"),
                       two = key_of(&other, "/bin/a", "a b");

    (void)state;
    assert_int_not_equal(one.exact, two.exact);
    assert_int_not_equal(one.coarse, two.coarse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exact_key_is_siphash_of_executable_and_arguments),
        cmocka_unit_test(runs_that_differ_in_values_are_one_program_by_the_coarse_key),
        cmocka_unit_test(other_programs_have_other_coarse_keys),
        cmocka_unit_test(a_title_is_not_a_command_line),
        cmocka_unit_test(another_secret_gives_other_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
