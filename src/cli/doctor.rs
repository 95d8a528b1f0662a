//! `repro doctor`: the machine, what is installed, and what that means for a run.

use std::path::Path;

use serde::Serialize;

use super::context::{open_store, root};
use super::human;
use super::{CliError, Exit, Global, print};
use crate::engine::config::Project;
use crate::engine::resources::{cores, gpus, memory_bytes};
use crate::engine::store::Access;

/// Look at the machine and at what is installed.
#[derive(clap::Args)]
pub struct Args {}

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    found: String,
    /// `ok`, `note` (something optional is not there) or `problem`.
    state: &'static str,
}

/// Programs that some parts can use, and for what. None is needed for a run.
const OPTIONAL: [(&str, &str); 5] = [
    ("nvcc", "building with `--features cuda`"),
    ("sbatch", "running nodes on a Slurm cluster"),
    ("chromium", "the browser tests of the report"),
    ("pdflatex", "compiling the LaTeX tables"),
    ("python3", "comparing with PyTorch"),
];

pub fn run(global: &Global, _: &Args) -> Result<Exit, CliError> {
    let root = root(global)?;
    let mut findings = vec![
        Finding { what: "cores", found: cores().to_string(), state: "ok" },
        Finding {
            what: "memory",
            found: memory_bytes().map_or("unknown".into(), |bytes| format!("{} available", human::bytes(bytes))),
            state: if memory_bytes().is_some_and(|bytes| bytes < 2 << 30) { "note" } else { "ok" },
        },
        disk(&root),
        Finding { what: "processor", found: features(), state: "ok" },
        gpu(),
    ];
    findings.push(match Project::load(&root) {
        Ok(project) => {
            let names = project.profiles().join(", ");
            Finding {
                what: "project",
                found: format!("{}, profiles: {names}", human::count(project.stages.len(), "stage")),
                state: "ok",
            }
        }
        Err(error) => Finding { what: "project", found: error.to_string(), state: "problem" },
    });
    findings.push(match open_store(global, &root, Access::Read) {
        Ok(store) => Finding {
            what: "store",
            found: format!("{}, {}", store.folder.display(), human::count(store.journal.all_done().len(), "result")),
            state: "ok",
        },
        Err(error) => Finding { what: "store", found: error.to_string(), state: "problem" },
    });
    for (program, use_for) in OPTIONAL {
        let there = on_path(program);
        let found = if there { format!("found; for {use_for}") } else { format!("not found; only needed for {use_for}") };
        findings.push(Finding { what: program, found, state: if there { "ok" } else { "note" } });
    }
    if global.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&findings).expect("plain data")));
    } else {
        let mut out = String::new();
        for finding in &findings {
            let mark = match finding.state {
                "ok" => "ok     ",
                "note" => "note   ",
                _ => "PROBLEM",
            };
            out += &format!("{mark}  {:<10} {}\n", finding.what, finding.found);
        }
        print(&out);
    }
    Ok(if findings.iter().any(|finding| finding.state == "problem") { Exit::Wrong } else { Exit::Ok })
}

fn disk(root: &Path) -> Finding {
    let free = rustix::fs::statvfs(root).ok().map(|stat| stat.f_bavail * stat.f_frsize);
    let found = free.map_or("unknown".into(), |bytes| format!("{} free", human::bytes(bytes)));
    Finding { what: "disk", found, state: if free.is_some_and(|bytes| bytes < 1 << 30) { "note" } else { "ok" } }
}

fn gpu() -> Finding {
    let built = if cfg!(feature = "cuda") { "this build can use it" } else { "this build has no `cuda` feature" };
    match gpus() {
        0 => Finding { what: "GPU", found: format!("none; {built}"), state: "note" },
        count => {
            Finding { what: "GPU", found: format!("{count}; {built}"), state: if cfg!(feature = "cuda") { "ok" } else { "note" } }
        }
    }
}

fn features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let mut found = vec!["x86_64"];
        for (there, name) in [
            (std::is_x86_feature_detected!("avx2"), "AVX2"),
            (std::is_x86_feature_detected!("fma"), "FMA"),
            (std::is_x86_feature_detected!("avx512f"), "AVX-512"),
        ] {
            if there {
                found.push(name);
            }
        }
        found.join(" ")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.to_string()
    }
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
