"""The days that bench/ground-truth --day records: what runs when, and the seed each was first recorded with.

The programs are those of bench/programs.py. A shared phase has the name of what it is about.
"""
from truth_day import Day, Phase, program, solo


def steady(kind, size="medium", **more):
    """Never rests."""
    return program(kind, size, seconds=26, **more)


def varied(kind, size="medium", *, busy, pause, seconds=45, **more):
    """Works for `busy` seconds and rests for `pause` seconds, on average."""
    return program(kind, size, busy=busy, pause=pause, seconds=seconds, **more)


# To choose constants on.
CHOOSE = [
    solo("serve_llm"), solo("train_vision"), solo("recommend"), solo("attend"), solo("simulate_flow"), solo("solve"),
    Phase("A-varied", [varied("serve_llm", busy=4, pause=3), varied("train_vision", busy=6, pause=4),
                       varied("recommend", busy=3, pause=3)]),
    Phase("B-steady", [steady("attend"), steady("simulate_flow")]),
    # Neither has run alone yet.
    Phase("C-strangers", [varied("diffuse", busy=5, pause=3), varied("sort_rows", busy=4, pause=4)]),
    solo("train_llm"), solo("price_options"), solo("transcribe"),
    # One ends and comes back for another job.
    Phase("D-restart", [program("train_llm", seconds=40), program("price_options", job="monday", seconds=14),
                        program("price_options", job="tuesday", start=20, seconds=16), program("wait", seconds=40)]),
    # A known program, but its command line runs another one now.
    Phase("E-changed", [steady("serve_llm", acts_as="solve"), steady("transcribe")]),
    Phase("F-four", [varied("train_vision", busy=5, pause=5), varied("attend", busy=3, pause=4),
                     varied("recommend", busy=4, pause=4), varied("aggregate", busy=4, pause=5)]),
    solo("diffuse"), solo("sort_rows"), solo("aggregate"), solo("wait"),
]

# To check them on: other sizes, other mixtures, a swap.
CHECK = [
    solo("attract", "large"), solo("serve_llm", "large"), solo("train_llm"), solo("recommend"), solo("convolve_graph"),
    solo("solve", "large"),
    Phase("A-light-heavy", [steady("attract", "large"), steady("recommend")]),
    Phase("B-varied", [varied("serve_llm", "large", busy=3, pause=4), varied("convolve_graph", busy=5, pause=3),
                       varied("train_llm", busy=6, pause=3)]),
    # Two of one program, and one that has not run alone yet.
    Phase("C-twins", [varied("train_llm", job="red", busy=4, pause=3), varied("train_llm", job="blue", busy=6, pause=4),
                      varied("sort_rows", "large", busy=4, pause=4)]),
    Phase("D-steady3", [steady("solve", "large"), steady("convolve_graph"), steady("attract", "large")]),
    # Each runs under the other's name.
    Phase("E-swapped", [steady("attract", "large", acts_as="recommend"),
                        steady("recommend", "large", acts_as="attract")]),
    Phase("F-come-and-go", [varied("serve_llm", "large", busy=5, pause=2, seconds=44),
                            program("price_options", "small", seconds=12),
                            program("diffuse", "large", start=10, seconds=14),
                            program("aggregate", "large", start=24, seconds=16)]),
    solo("sort_rows", "large"), solo("recommend", "large"), solo("price_options", "small"), solo("diffuse", "large"),
    solo("aggregate", "large"),
]

# To score once. Its sizes, its mixtures and one of its programs (play) are in neither of the other days. These four
# come back with exactly the same command line, as servers do: their seeds are fixed.
SERVER = {"kind": "serve_llm", "size": "small", "seed": 41}
PAINTER = {"kind": "diffuse", "size": "small", "seed": 5}
PLAYER = {"kind": "play", "size": "small", "seed": 29}
READER = {"kind": "attend", "size": "small", "seed": 17}
FINAL = [
    solo(**SERVER), solo(**PAINTER), solo(**READER), solo("train_vision", "large"), solo(**PLAYER),
    solo("simulate_flow", "small"), solo("transcribe", "large"),
    Phase("A-varied", [varied("train_vision", "large", busy=5, pause=3), varied(**READER, busy=3, pause=4),
                       varied("transcribe", "large", busy=4, pause=3)]),
    Phase("B-steady4", [steady(**SERVER), steady(**PAINTER), steady("simulate_flow", "small"), steady(**PLAYER)]),
    # Two that have not run alone yet, beside a known one.
    Phase("C-strangers", [varied("convolve_graph", "large", busy=4, pause=3), varied("solve", "small", busy=5, pause=4),
                          varied(**SERVER, busy=3, pause=4)]),
    # One ends and comes back with a larger problem.
    Phase("D-restart", [program("train_vision", "large", seconds=40), program("simulate_flow", "small", seconds=14),
                        program("simulate_flow", "large", start=20, seconds=16),
                        varied("transcribe", "large", busy=3, pause=3, seconds=40)]),
    # The same command line to the letter, and another program.
    Phase("E-changed", [varied(**PAINTER, acts_as="attract", busy=5, pause=4, seconds=36),
                        varied("simulate_flow", "small", busy=4, pause=3, seconds=36)]),
    # Each runs under the other's command line; the third one is what it was.
    Phase("F-swapped", [varied(**READER, acts_as="play", busy=4, pause=3, seconds=40),
                        varied(**PLAYER, acts_as="attend", busy=5, pause=4, seconds=40),
                        varied(**SERVER, busy=4, pause=4, seconds=40)]),
    solo("convolve_graph", "large"), solo("solve", "small"), solo("simulate_flow", "large"), solo("attract", "small"),
]


def clients(*programs):
    """The same, as clients of MPS."""
    return [p._replace(mps=True) for p in programs]


# Under MPS, to choose constants on.
MPS_CHOOSE = [
    solo("serve_llm"), solo("train_vision"), solo("recommend"), solo("attend"), solo("simulate_flow"), solo("sort_rows"),
    solo("price_options"),
    Phase("A-steady", clients(steady("attend"), steady("recommend"))),
    Phase("B-varied", clients(varied("serve_llm", busy=4, pause=3), varied("train_vision", busy=5, pause=3),
                              varied("sort_rows", busy=3, pause=3))),
    # A light client beside one that fills the board.
    Phase("C-light-heavy", clients(steady("train_vision"), steady("price_options"))),
    Phase("D-partitions", clients(program("simulate_flow", seconds=26, threads=30),
                                  program("recommend", seconds=26, threads=60))),
    # One has not run alone yet.
    Phase("E-stranger", clients(varied("diffuse", busy=5, pause=3), varied("serve_llm", busy=4, pause=4))),
    # One is no client: it takes turns with all of them.
    Phase("F-beside", [*clients(steady("attend"), steady("sort_rows")), steady("simulate_flow")]),
    # A known program, but its command line runs another one now.
    Phase("G-changed", clients(steady("recommend", acts_as="diffuse"), steady("sort_rows"))),
    solo("diffuse"),
]

# Under MPS, to score once: programs and sizes that are not in the other one.
MPS_FINAL = [
    solo("train_llm"), solo("transcribe"), solo("aggregate"), solo("solve", "large"), solo("convolve_graph"),
    solo("play", "large"), solo("attract", "large"),
    Phase("A-varied", clients(varied("train_llm", busy=5, pause=3), varied("transcribe", busy=4, pause=3),
                              varied("aggregate", busy=3, pause=3))),
    Phase("B-steady", clients(steady("solve", "large"), steady("convolve_graph"))),
    Phase("C-light-heavy", clients(steady("play", "large"), steady("attract", "large"))),
    Phase("D-four", clients(varied("convolve_graph", busy=4, pause=3), varied("play", "large", busy=5, pause=3),
                            varied("aggregate", busy=3, pause=4), varied("transcribe", busy=4, pause=4))),
    Phase("E-come-and-go", clients(program("train_llm", seconds=40), program("transcribe", seconds=14),
                                   program("solve", "large", start=20, seconds=16))),
    Phase("F-partitions", clients(program("attract", "large", seconds=26, threads=25),
                                  program("train_llm", seconds=26, threads=75))),
]

# Under MPS, recorded and scored once after the last change of the method: other sizes, and everybody in other company.
MPS_LATER = [
    solo("serve_llm", "large"), solo("train_vision", "small"), solo("recommend", "large"), solo("simulate_flow", "large"),
    solo("diffuse", "large"), solo("price_options", "large"), solo("sort_rows", "large"),
    Phase("A-steady", clients(steady("simulate_flow", "large"), steady("diffuse", "large"))),
    Phase("B-varied", clients(varied("serve_llm", "large", busy=4, pause=3), varied("sort_rows", "large", busy=3, pause=3),
                              varied("recommend", "large", busy=5, pause=4))),
    Phase("C-three", clients(steady("price_options", "large"), steady("recommend", "large"), steady("train_vision", "small"))),
    Phase("D-come-and-go", clients(program("diffuse", "large", seconds=36), program("sort_rows", "large", seconds=12),
                                   program("train_vision", "small", start=17, seconds=16))),
    # One is no client: it takes turns with all of them.
    Phase("E-beside", [*clients(steady("serve_llm", "large"), steady("simulate_flow", "large")),
                       steady("price_options", "large")]),
]

DAYS = {"choose": Day(11, CHOOSE), "check": Day(23, CHECK), "final": Day(20261116, FINAL),
        "mps-choose": Day(7, MPS_CHOOSE), "mps-final": Day(20261117, MPS_FINAL),
        "mps-later": Day(20261119, MPS_LATER)}
