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

#define PYTHON "/usr/bin/python3.12"

static void runs_that_differ_in_values_are_one_program_by_the_coarse_key(void **state)
{
    static const struct {
        const char *executable, *one, *other;
    } cases[] = {
        /* torchrun */
        {PYTHON,
         "/usr/bin/python3 -u train.py --local-rank=0 --seed 17 --lr 3e-4 --out /scratch/a/run-1",
         "/usr/bin/python3 -u train.py --local-rank=3 --seed 9 --lr 0.001 --out /scratch/b/run-23"},
        {PYTHON, "python3 /opt/bin/torchrun --nnodes=2 --rdzv-endpoint=10.0.0.1:29500 train.py",
         "python3 /usr/bin/torchrun --nnodes=4 --rdzv-endpoint=10.0.7.9:29501 train.py"},
        {PYTHON,
         "python3 -m torch.distributed.run --rdzv-id=4f8a91bc --master-addr node17 -m app.train",
         "python3 -m torch.distributed.run --rdzv-id=00d1e2f3 --master-addr node4 -m app.train"},
        {PYTHON, "python3 train.py --resume ckpt-0001000.pt",
         "python3 train.py --resume ckpt-2.pt"},
        {PYTHON, "python3 train.py /data/a/part17.h5", "python3 train.py /data/b/part18.h5"},
        {PYTHON, "python3 train.py --run 123e4567-e89b-12d3-a456-426614174000",
         "python3 train.py --run ffffffff-aaaa-bbbb-cccc-dddddddddddd"},
        {PYTHON, "python3 train.py --run-id=run-20240501T101010-4f8a91bc",
         "python3 train.py --run-id=run-20250713T093001-deadbee1"},
        {PYTHON, "python3 train.py --at 2024-05-01T10:00:00Z --size 1024x768 --ids 0,1,2,3 0x7f8a",
         "python3 train.py --at 2025-11-30T23:59:59Z --size 512x512 --ids 4 0x7fffffff"},
        /* Hydra */
        {PYTHON, "python3 train.py model=vit optimizer.lr=3e-4 seed=1 hydra.run.dir=/out/a/17",
         "python3 train.py model=vit optimizer.lr=0.1 seed=22 hydra.run.dir=/out/b/18"},
        /* vLLM */
        {"/usr/bin/python3.11",
         "python3 -m vllm.entrypoints.openai.api_server --model org/chat --port 8000 --seed 1",
         "python3 -m vllm.entrypoints.openai.api_server --model org/chat --port 8001 --seed 2"},
        {"/usr/bin/python3.11",
         "/opt/venv/bin/python3 /opt/venv/bin/vllm serve /models/a/Llama-3-8B --tp=2 --host 0.0.0.0",
         "/srv/bin/python3 /srv/bin/vllm serve /nfs/Llama-3-8B/ --tp=4 --host 127.0.0.1"},
        /* srun starts the program itself; paths of checkpoints differ. */
        {"/home/a/app/simulate", "/home/a/app/simulate --steps 1000 ckpt-0001.h5",
         "/home/a/app/simulate --steps 5000 ckpt-0002.h5"},
        {"/usr/bin/srun", "srun --jobid=4711 -n4 -w node[01-04] ./simulate -j8",
         "srun --jobid=4712 -n16 -w node[17-32] ../b/simulate -j64"},
        /* Jupyter */
        {"/opt/conda/bin/python3.11",
         "/opt/conda/bin/python -m ipykernel_launcher -f "
         "/root/.local/share/jupyter/runtime/kernel-0b1f2c3d-aaaa-4bbb-8ccc-0123456789ab.json",
         "/opt/conda/bin/python -m ipykernel_launcher -f "
         "/home/u/.local/share/jupyter/runtime/kernel-ffee0011-1234-4321-9abc-ba9876543210.json"},
        {"/opt/conda/bin/python3.11",
         "/opt/conda/bin/python -Xfrozen_modules=off -m ipykernel_launcher "
         "--f=/tmp/tmp1/kernel-v3f00dcafe41aa07c2b93d55e08f6617bc2ade9034.json",
         "/opt/conda/bin/python -Xfrozen_modules=off -m ipykernel_launcher "
         "--f=/tmp/tmp2/kernel-v30b8e22719c64fd5a8e10b773f2cd94e6a85bb1cf.json"},
        {"/usr/lib/jvm/java-17/bin/java", "java -Xmx64g -jar /opt/app/train-1.4.2.jar 4711",
         "java -Xmx64g -jar /srv/train-1.5.0.jar 4712"},
        /* Another place, another version of the interpreter. */
        {PYTHON, "python3 train.py", "/venv/bin/python3.11 train.py"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct program_key one = key_of(&secret, cases[i].executable, cases[i].one);
        struct program_key other = key_of(&secret, cases[i].executable, cases[i].other);

        assert_int_not_equal(one.exact, 0);
        assert_int_not_equal(one.exact, other.exact);
        if (one.coarse != other.coarse)
            fail_msg("not one program:\n%s\n%s", cases[i].one, cases[i].other);
    }
}

static void other_programs_have_other_coarse_keys(void **state)
{
    static const char *const lines[] = {
        "python3",
        "python3 train.py",
        "python3 serve.py",
        "python3 trainer.py",
        "python3 train.py -e",
        "python3 train.py -x",
        "python3 train.py e",
        "python3 train.py exe",
        "python3 train.py --",
        "python3 -m train",
        "python3 -m train.py",
        "python3 -m torch.distributed.run train.py",
        "python3 -m torch.distributed.launch train.py",
        "python3 train.py --mixed-precision",
        "python3 train.py --model org/chat",
        "python3 train.py --model org/code",
        "python3 train.py --model other/chat",
        "python3 train.py --model meta-llama/Llama-3-8B",
        "python3 train.py --model meta-llama/Llama-3-70B",
        "python3 train.py --model /models/mixtral",
        "python3 train.py --model /models/qwen",
        "python3 train.py --model /models/phi/",
        "python3 train.py --model=/models/qwen",
        "python3 train.py --model facade",
        "python3 train.py --model deadbeef", /* a word */
        "python3 train.py model=vit",
        "python3 train.py model=unet",
        "python3 train.py large",
        "python3 train.py large small",
        "python3 train.py large 1",
        "python3 train.py --resume /ckpt/last",
        "python3 train.py --lr-decay 1",
        "python3 train.py --lr 1",
        "python3 train.py -n4",
        "python3 train.py -j4",
        "python3 -c print(1)",
        "python3 -c print(x)",
        "python3 -c import/torch",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        for (size_t k = 0; k < i; k++)
            if (key_of(&secret, PYTHON, lines[i]).coarse ==
                key_of(&secret, PYTHON, lines[k]).coarse)
                fail_msg("one program: %s\n%s", lines[i], lines[k]);
    assert_int_not_equal(key_of(&secret, "/bin/a", "a x").coarse,
                         key_of(&secret, "/bin/b", "b x").coarse);
    assert_int_not_equal(key_of(&secret, "/bin/7z", "7z x").coarse,
                         key_of(&secret, "/bin/8z", "8z x").coarse);
}

/* The price of the rule: a hint from another program, which is validated before it counts. */
static void names_that_differ_in_a_number_are_one_program_by_the_coarse_key(void **state)
{
    static const char *const lines[][2] = {
        {"python3 train.py --model meta-llama/Llama-2-8B",
         "python3 train.py --model meta-llama/Llama-3-8B"},
        {"python3 train.py --arch resnet50", "python3 train.py --arch resnet101"},
        {"python3 loads.py llm llm1", "python3 loads.py llm llm2"},
        {"python3 train1.py", "python3 train2.py"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(key_of(&secret, PYTHON, lines[i][0]).coarse,
                         key_of(&secret, PYTHON, lines[i][1]).coarse);
}

static void arguments_are_not_joined(void **state)
{
    (void)state;
    assert_int_not_equal(key_of(&secret, PYTHON, "python3 ab c").coarse,
                         key_of(&secret, PYTHON, "python3 a bc").coarse);
    assert_int_not_equal(key_of(&secret, PYTHON, "python3 ab c").exact,
                         key_of(&secret, PYTHON, "python3 a bc").exact);
}

static void a_title_is_not_a_command_line(void **state)
{
    static const struct {
        const char *executable;
        struct span arguments;
    } cases[] = {
        {PYTHON, {"", 0}}, /* a zombie */
        {PYTHON, {"", 1}},
        {PYTHON, {"\0train.py", 10}},
        {PYTHON, {"12", 3}},
        {PYTHON, {"VLLM::EngineCore", 17}},
        {PYTHON, {"ray::train()", 13}},
        {PYTHON, {"ray::IDLE\0\0\0\0\0\0\0\0", 17}},
        {PYTHON,
         {"sleep\0"
          "600",
          10}},
        {PYTHON, {"python3 train.py epoch 7", 25}}, /* one argument */
        {PYTHON, {"python3: worker", 16}},
        {PYTHON, {"python3:worker", 15}},
        {PYTHON, {"python3[worker]", 16}},
        {PYTHON, {"python3\0train.py\0\0\0\0", 20}}, /* padded */
        {PYTHON, {"python3\0train.py", 16}},         /* ran into the environment */
        {"/usr/sbin/nginx", {"nginx: worker process", 22}},
        {"/usr/bin/my app", {"my: app", 8}},
        {"", {"ray::IDLE", 10}}, /* the executable cannot be read */
        {"", {"nginx: worker process", 22}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct program_key key =
            program_key_of(&secret, span_of(cases[i].executable), cases[i].arguments);

        if (key.exact != 0 || key.coarse != 0)
            fail_msg("case %zu has a key", i);
    }
}

static void a_program_may_be_called_in_many_ways(void **state)
{
    static const struct {
        const char *executable;
        struct span arguments;
    } cases[] = {
        {PYTHON, {"python", 7}},
        {PYTHON, {"/opt/conda/bin/python3", 23}},
        {PYTHON, {"python3\0--tag\0", 15}}, /* with an empty value */
        {"/usr/bin/bash", {"-bash", 6}},
        {"/usr/bin/7z", {"7z\0a", 5}},
        {"/opt/my app/run me", {"run me\0now", 11}},
        {"/home/u/a.out", {"./a.out", 8}},
        {"", {"/opt/conda/bin/python3\0train.py", 32}}, /* it cannot be read */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct program_key key =
            program_key_of(&secret, span_of(cases[i].executable), cases[i].arguments);

        if (key.exact == 0 || key.coarse == 0)
            fail_msg("case %zu has no key", i);
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
        cmocka_unit_test(names_that_differ_in_a_number_are_one_program_by_the_coarse_key),
        cmocka_unit_test(arguments_are_not_joined),
        cmocka_unit_test(a_title_is_not_a_command_line),
        cmocka_unit_test(a_program_may_be_called_in_many_ways),
        cmocka_unit_test(another_secret_gives_other_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
