//! The system calls that a confined command does not get: what changes the system itself, and, where the network is
//! closed, all that reaches out of the machine.
//!
//! They fail with `EPERM`, as without privileges. Programs of another architecture (32 bits) are ended with `SIGSYS`: their
//! calls have other numbers, and what is not known is not let through.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// The architecture; on others this is not compiled.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: TargetArch = TargetArch::riscv64;

/// Whether calls can be filtered here.
pub(super) const AVAILABLE: bool = true;

/// Not every C library's headers have it.
const KEXEC_FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// What changes the system itself, or looks into it. Most need privileges that an agent seldom has; as root it has them.
/// Debugging is not here: Landlock holds it to what a command started itself.
const NEVER: &[libc::c_long] = &[
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    // Files by their number, past all directories.
    libc::SYS_open_by_handle_at,
    // The kernel and the machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_acct,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // The clock.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Keys that the kernel keeps.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// `ioctl` requests that type into a terminal: whoever sits there would seem to have typed it.
#[allow(clippy::unnecessary_cast, reason = "their type is another one with another C library")]
const TYPING: [u64; 2] = [libc::TIOCSTI as u64, libc::TIOCLINUX as u64];

/// Families of sockets that stay on this machine and do nothing that the file system's own sockets do not.
const LOCAL: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Calls of the other numbering that a 64-bit x86 kernel may offer beside its own (x32), where its numbers differ: `ioctl`
/// and `kexec_load`.
#[cfg(target_arch = "x86_64")]
const X32_OTHERS: [i64; 2] = [514, 528];
/// The bit that marks a call of that numbering.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Keeps the calling thread and all that it starts from these calls. `system`: from those that change the system;
/// `network`: whether other hosts may be reached.
pub(super) fn filter(system: bool, network: bool) -> io::Result<()> {
    let program = program(system, network).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

fn program(system: bool, network: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut refused = BTreeMap::new();
    if system {
        for number in NEVER {
            refuse(&mut refused, *number, Vec::new());
        }
        let typing = TYPING.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)])).collect::<Result<_, _>>()?;
        refuse(&mut refused, libc::SYS_ioctl, typing);
        // The limits of other processes: one of a second's time is a way to end them.
        let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        let others = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
        refuse(&mut refused, libc::SYS_prlimit64, vec![SeccompRule::new(vec![others, sets])?]);
    }
    if !network {
        let elsewhere: Vec<_> = LOCAL.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64)).collect();
        refuse(&mut refused, libc::SYS_socket, vec![rule(&elsewhere)?]);
        // Its queue makes sockets without a call of their own.
        refuse(&mut refused, libc::SYS_io_uring_setup, Vec::new());
    }
    #[cfg(target_arch = "x86_64")]
    if system {
        refused.extend(X32_OTHERS.map(|number| (X32 | number, Vec::new())));
    }
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(refused, SeccompAction::Allow, refusal, ARCHITECTURE)?.try_into()
}

fn refuse(refused: &mut BTreeMap<i64, Vec<SeccompRule>>, number: libc::c_long, rules: Vec<SeccompRule>) {
    #[cfg(target_arch = "x86_64")]
    refused.insert(X32 | number, rules.clone());
    refused.insert(number, rules);
}

/// A rule that matches where all of these hold: argument, comparison, value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |(argument, comparison, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, comparison.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}
