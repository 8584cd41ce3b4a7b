//! What a command of root's gives up: the privileges to change the system itself, for which files and calls alone do not
//! stand. An ordinary user has none of them.

use rustix::io;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Devices made anew lead past all directories, the network's own settings past all files. What is owned by others, and
/// changing into other users, stays: builds and package managers of languages do that.
const GIVEN_UP: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_PACCT)
    .union(CapabilitySet::SYS_TTY_CONFIG)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::AUDIT_CONTROL)
    .union(CapabilitySet::BLOCK_SUSPEND)
    .union(CapabilitySet::WAKE_ALARM)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SETFCAP);

/// Gives them up for the calling thread and all that it starts. With the restriction of this thread no program gets them
/// back.
pub(super) fn give_up() -> io::Result<()> {
    let mut have = capabilities(None)?;
    if !have.permitted.intersects(GIVEN_UP) {
        return Ok(());
    }
    for set in [&mut have.effective, &mut have.permitted, &mut have.inheritable] {
        set.remove(GIVEN_UP);
    }
    set_capabilities(None, have)
}
