// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Each structure has the size and the offsets that the C compiler finds in the
//! headers, each constant its value there.

use ktask_sys::*;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `include/` of the sources that the crate is built from.
fn headers() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = ["csrc/ktask/include", "ktask/include"];

    here.ancestors()
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|dir| dir.join("ktask/register.h").exists())
        .expect("the headers are there")
}

/// C expressions that the compiler is asked for, and what they are here.
struct Table(Vec<(String, u64)>);

macro_rules! structure {
    ($table:expr, $name:ident, $($field:ident),+) => {
        $table.0.push((concat!("sizeof(struct ", stringify!($name), ")").into(),
                       size_of::<$name>() as u64));
        $($table.0.push((concat!("offsetof(struct ", stringify!($name), ", ",
                                 stringify!($field), ")").into(),
                         offset_of!($name, $field) as u64));)+
    };
}

macro_rules! constants {
    ($table:expr, $($name:ident),+) => {
        $($table.0.push((stringify!($name).into(), $name as u64));)+
    };
}

fn table() -> Table {
    let mut t = Table(Vec::new());

    structure!(
        t,
        ktask_progress,
        struct_size,
        units_done,
        units_total,
        elapsed_ns,
        remaining_ns,
        threads
    );
    structure!(t, ktask_node_result, nid, chunks, units, remote_chunks);
    structure!(
        t,
        ktask_result,
        struct_size,
        error,
        fail_error,
        fail_pos,
        fail_offset,
        fail_range,
        threads,
        helpers_lent,
        chunks,
        units,
        wall_ns,
        cpu_ns,
        tail_ns,
        nr_nodes,
        nodes,
        largest_chunk
    );
    structure!(
        t,
        ktask_ctl,
        struct_size,
        thread_func,
        func_arg,
        min_chunk_size,
        undo_func,
        iter_func,
        align,
        max_threads,
        flags,
        deadline_ns,
        progress_func,
        progress_arg,
        progress_ms,
        chunk_us,
        cpus,
        cpus_size,
        result,
        name,
        reserved
    );
    structure!(
        t,
        ktask_opts,
        struct_size,
        max_threads,
        progress_ms,
        deadline_ns,
        progress_func,
        progress_arg,
        result,
        flags,
        chunk_us,
        reserved
    );
    structure!(
        t,
        ktask_file,
        struct_size,
        path,
        fd,
        nofollow,
        offset,
        len,
        error,
        fail_offset,
        size
    );
    structure!(
        t,
        ktask_op_args,
        struct_size,
        addr,
        len,
        flags,
        src,
        src_len,
        files,
        nr_files
    );
    structure!(t, ktask_limit, struct_size, name, threads, why);
    structure!(
        t,
        ktask_job_info,
        struct_size,
        pid,
        uid,
        name,
        helpers,
        wanted,
        units_done,
        units_total,
        elapsed_ns,
        remaining_ns
    );
    structure!(
        t,
        ktask_permits_info,
        struct_size,
        used,
        limit,
        shared,
        cut
    );
    structure!(
        t,
        ktask_register_ctl,
        struct_size,
        register_func,
        unregister_func,
        func_arg,
        flags,
        stall_us,
        unit_bytes,
        max_piece_bytes,
        reserved
    );
    structure!(
        t,
        ktask_registration_info,
        struct_size,
        bytes,
        pieces,
        calls_ns,
        longest_ns
    );
    structure!(
        t,
        ktask_uring_buffers,
        struct_size,
        ring_fd,
        first_slot,
        addr,
        slot_bytes
    );
    structure!(
        t,
        ktask_iommu,
        struct_size,
        fd,
        ioas_id,
        addr,
        iova,
        prot,
        padding
    );
    structure!(
        t,
        ktask_verbs,
        struct_size,
        pd,
        access,
        padding,
        addr,
        mr_bytes,
        mrs,
        nr_mrs
    );
    structure!(t, ktask_cuda, struct_size, flags, cuda_error, library);
    constants!(
        t,
        KTASK_REGISTER_PARALLEL,
        KTASK_REGISTER_PRESENT,
        KTASK_REGISTER_READ,
        KTASK_REGISTER_MAKES_PAGES,
        KTASK_REGISTER_LOCKS_MAPPINGS
    );
    constants!(
        t,
        KTASK_FIXED,
        KTASK_BLOCKS,
        KTASK_POPULATE_READ,
        KTASK_POPULATE_TOUCH,
        KTASK_DISCARD_FREE,
        KTASK_DISCARD_LOCKED,
        KTASK_STORE_STREAM,
        KTASK_STORE_CACHED,
        KTASK_FILE_DIRECT,
        KTASK_TO_END,
        KTASK_RESULT_NODES
    );
    t
}

#[test]
fn declarations_follow_the_headers() {
    let table = table();
    let dir = std::env::temp_dir().join(format!("ktask-sys-{}", std::process::id()));
    let asked: String = table
        .0
        .iter()
        .map(|(what, _)| format!("printf(\"%llu\\n\", (unsigned long long)({what}));\n"))
        .collect();
    let program = dir.join("program");

    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("program.c"),
        format!(
            "#include <stdio.h>\n#include <ktask/register.h>\n\
                            int main(void) {{\n{asked}return 0; }}\n"
        ),
    )
    .unwrap();
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    let status = Command::new(&compiler)
        .arg("-I")
        .arg(headers())
        .arg("-o")
        .arg(&program)
        .arg(dir.join("program.c"))
        .status()
        .unwrap();
    assert!(status.success());
    let said = Command::new(&program).output().unwrap().stdout;
    std::fs::remove_dir_all(&dir).unwrap();

    let said: Vec<u64> = String::from_utf8(said)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(said.len(), table.0.len());
    for ((what, here), there) in table.0.iter().zip(said) {
        assert_eq!(*here, there, "{what}");
    }
}
