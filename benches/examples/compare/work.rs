//! What is measured. Scripts use what every engine has: `agent(prompt)`, `parallel(thunks)`, `pipeline(items, …)`.

use peer_protocol::Job;

use super::peer::Kind;

/// How an engine is set up, as far as it can be.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    /// Agents that run at once, where there is a queue.
    pub(super) agents_at_once: u32,
    /// Sandboxes in the pool, where there is one; 0 for none.
    pub(super) sandboxes: u32,
}

impl Setup {
    /// As in a service with many short runs. So many agents is what the replaced engine does at most by default.
    pub(super) const SERVICE: Self = Self { agents_at_once: 16, sandboxes: 1000 };
}

pub(super) struct Work {
    pub(super) name: &'static str,
    script: &'static str,
    pub(super) measure: Measure,
}

/// How long an engine runs a script in its turn, in milliseconds: until it is warm, and for some runs more.
const TURN_MS: f64 = 250.0;

pub(super) enum Measure {
    /// How long a run takes, from text to value.
    Run {
        expect: &'static str,
        /// No two texts are the same.
        fresh: bool,
        /// Divides the time, for works that repeat something within the run.
        per: u32,
    },
    /// How long it takes until so many runs are at their agents.
    Start { runs: u32 },
    /// Memory of a run that waits, of so many.
    Memory { runs: u32 },
    /// How long a run takes to end once cancelled.
    Cancel {
        runs: u32,
        /// The script computes, and never awaits.
        spinning: bool,
    },
    /// From the start of the process to the script's first agent.
    FirstAgent,
}

const PARK: &str = "return await agent('hang')";

const fn run(name: &'static str, script: &'static str, expect: &'static str, per: u32) -> Work {
    Work { name, script, measure: Measure::Run { expect, fresh: false, per } }
}

const fn park(name: &'static str, measure: Measure) -> Work {
    Work { name, script: PARK, measure }
}

/// 56 lines as scripts have them.
macro_rules! line {
    () => {
        "{ const answer = await agent(`Read ${file} and list what is wrong`, { label: 'read' }); found.push(answer) }\n"
    };
}
macro_rules! seven_lines {
    () => {
        concat!(line!(), line!(), line!(), line!(), line!(), line!(), line!())
    };
}
const SIX_KIB: &str = concat!(
    "let file, found; if (file) {\n",
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    seven_lines!(),
    "}\nreturn 1"
);

pub(super) const WORKS: &[Work] = &[
    Work {
        name: "a trivial run, new text",
        script: "return 1",
        measure: Measure::Run { expect: "1", fresh: true, per: 1 },
    },
    Work {
        name: "a new text of 6 KiB",
        script: SIX_KIB,
        measure: Measure::Run { expect: "1", fresh: true, per: 1 },
    },
    run("the same text again", "return 1", "1", 1),
    run("one agent", "return await agent('x')", r#""x""#, 1),
    run(
        "1,000 agents in parallel",
        "return (await parallel(Array.from({ length: 1000 }, (_, i) => () => agent('x' + i)))).length",
        "1000",
        1,
    ),
    run(
        "1,000 agents in sequence, per call",
        "let n = 0; for (let i = 0; i < 1000; i++) n += (await agent('x')).length; return n",
        "1000",
        1000,
    ),
    run(
        "a pipeline of 3 stages over 300 items",
        "return (await pipeline(Array.from({ length: 300 }, (_, i) => i), (i) => agent('a' + i), (p, i) => agent('b' + i), \
         (p, i) => agent('c' + i))).length",
        "300",
        1,
    ),
    run("a result of 1 MiB", "return ['x'.repeat(1 << 20)].length && 'x'.repeat(1 << 20)", MIB, 1),
    run(
        "fib(27) in the script",
        "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(27)",
        "196418",
        1,
    ),
    park("starting 100 runs", Measure::Start { runs: 100 }),
    park("memory of a parked run, of 100", Measure::Memory { runs: 100 }),
    park("memory of a parked run, of 1,000", Measure::Memory { runs: 1000 }),
    park("memory of a parked run, of 10,000", Measure::Memory { runs: 10_000 }),
    park("cancelling a parked run", Measure::Cancel { runs: 10, spinning: false }),
    Work {
        name: "cancelling a run that spins",
        // The second agent lets engines that hand calls on when the script awaits hand on the first.
        script: "agent('hang'); await agent('x'); for (;;) {}",
        measure: Measure::Cancel { runs: 1, spinning: true },
    },
    park("process start to the first agent", Measure::FirstAgent),
];

/// Stands for the JSON of a string of 1 MiB.
const MIB: &str = "1 MiB";

impl Work {
    pub(super) fn job(&self) -> Job {
        let script = self.script.to_owned();
        match self.measure {
            Measure::Run { expect, fresh, .. } => {
                let expect = match expect {
                    MIB => format!("\"{}\"", "x".repeat(1 << 20)),
                    expect => expect.to_owned(),
                };
                Job::Run { script, expect, for_ms: TURN_MS, fresh }
            }
            Measure::Start { runs } | Measure::Memory { runs } | Measure::Cancel { runs, .. } => {
                Job::Park { script, count: runs }
            }
            Measure::FirstAgent => Job::Park { script, count: 1 },
        }
    }

    /// Works that take an engine seconds get fewer turns.
    pub(super) fn rounds(&self, rounds: usize) -> usize {
        match self.measure {
            Measure::Run { .. } | Measure::Cancel { spinning: false, .. } => rounds,
            _ => rounds.div_ceil(2),
        }
    }

    /// Whether an engine can do it, and is tried.
    pub(super) fn suits(&self, kind: Kind) -> bool {
        match self.measure {
            // Neither can interrupt a script that computes.
            Measure::Cancel { spinning: true, .. } => !matches!(kind, Kind::QuickJs | Kind::Floor),
            // The others have a thread for each run, most with megabytes of memory.
            Measure::Memory { runs } if runs > 100 => {
                matches!(kind, Kind::Fanfold | Kind::Floor | Kind::QuickJs)
            }
            _ => true,
        }
    }

    pub(super) fn setup(&self) -> Setup {
        // As many agents as there are runs.
        let parked = Setup { agents_at_once: 1_000_000, ..Setup::SERVICE };
        match self.measure {
            Measure::Run { .. } => Setup::SERVICE,
            Measure::Start { .. } | Measure::Cancel { .. } => parked,
            // A pool takes time to make, and keeps memory for the runs to come.
            Measure::Memory { .. } | Measure::FirstAgent => Setup { sandboxes: 0, ..parked },
        }
    }
}
