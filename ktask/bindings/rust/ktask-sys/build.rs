// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Compiles libktask.  What it is made of is told by the Makefile: a packaged crate
//! has its answer, and the sources, in `csrc/`; in a clone it is asked (`make
//! library-list`).

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

fn quit(why: &str) -> ! {
    eprintln!("ktask-sys: building: {why}");
    exit(1)
}

/// The directory that the list's paths begin in, and the list.
fn find_sources() -> (PathBuf, String) {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by Cargo"));
    let packaged = here.join("csrc/library.list");
    if packaged.exists() {
        println!("cargo:rerun-if-changed={}", packaged.display());
        let list = fs::read_to_string(&packaged).unwrap_or_else(|e| quit(&e.to_string()));
        return (here.join("csrc"), list);
    }
    let is_top = |dir: &&Path| dir.join("Makefile").exists() && dir.join("mk").is_dir();
    match here.ancestors().find(is_top) {
        Some(top) => (top.to_path_buf(), ask_make(top)),
        None => quit("no csrc/ here, and no clone of the tree around it"),
    }
}

fn ask_make(top: &Path) -> String {
    println!("cargo:rerun-if-changed={}", top.join("Makefile").display());
    println!(
        "cargo:rerun-if-changed={}",
        top.join("mk/bindings.mk").display()
    );
    let said = Command::new("make")
        .args(["--no-print-directory", "-s", "library-list"])
        .current_dir(top)
        .env_remove("MAKEFLAGS")
        .env_remove("MFLAGS")
        .output()
        .unwrap_or_else(|e| quit(&format!("make: {e}")));
    if !said.status.success() {
        quit(&String::from_utf8_lossy(&said.stderr));
    }
    String::from_utf8_lossy(&said.stdout).into_owned()
}

fn main() {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        quit("ktask is for Linux");
    }
    let (root, list) = find_sources();
    let mut build = cc::Build::new();
    let mut watched = BTreeSet::new();
    build.warnings(false).define("_GNU_SOURCE", None);
    for line in list.lines() {
        match line.split_once(' ') {
            Some(("version", v)) => {
                build.define("KTASK_VERSION", format!("\"{v}\"").as_str());
            }
            Some(("flag", "-D_GNU_SOURCE")) => {}
            Some(("flag", flag)) => {
                build.flag_if_supported(flag);
            }
            Some(("include", dir)) => {
                build.include(root.join(dir));
            }
            // A packaged crate has only those that are included.
            Some(("header", path)) if root.join(path).exists() => {
                watched.insert(root.join(path));
            }
            Some(("header", _)) => {}
            Some(("source", path)) => {
                let path = root.join(path);
                // The directory too: a source may be added.
                watched.extend(path.parent().map(Path::to_path_buf));
                watched.insert(path.clone());
                build.file(path);
            }
            _ => quit(&format!("not understood: {line}")),
        }
    }
    for path in watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    build.compile("ktask");
}
