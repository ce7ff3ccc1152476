//! Metadata stamps that identify the state of a file, and the conditions under which they are reliable.
//!
//! Content counts as unchanged if device, inode, mode, size, mtime and ctime are equal. This is reliable only
//! if the last change was some time before the read: the clock of a file system has a coarse resolution, and a
//! second change in the same tick is not visible. Git calls such an entry "racily clean". The metadata must
//! also be from the clock of this machine.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;

/// The minimum age of a change at the time of the read: twice the slowest tick of a Linux kernel.
const TICK: Duration = Duration::from_millis(20);
/// The minimum age if the file system appears to store whole seconds only. FAT stores every second one.
const SECONDS: Duration = Duration::from_secs(3);

/// The metadata of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileMetadataStamp {
    pub(crate) device: u64,
    inode: u64,
    mode: u32,
    pub(crate) size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    reason = "the types differ between systems"
)]
impl From<&Stat> for FileMetadataStamp {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

impl FileMetadataStamp {
    /// Encodes all fields in a stable order.
    #[cfg(feature = "syntax")]
    pub(crate) fn bytes(&self) -> [u8; 64] {
        let numbers = [
            u128::from(self.device) << 64 | u128::from(self.inode),
            u128::from(self.mode) << 64 | u128::from(self.size.cast_unsigned()),
            u128::from(self.modified.0.cast_unsigned()) << 64
                | u128::from(self.modified.1.cast_unsigned()),
            u128::from(self.changed.0.cast_unsigned()) << 64
                | u128::from(self.changed.1.cast_unsigned()),
        ];
        let mut bytes = [0; 64];
        for (place, number) in bytes.chunks_exact_mut(16).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns true if a change after `began` always results in another stamp.
    pub(crate) fn are_settled(&self, began: SystemTime) -> bool {
        let whole = self.modified.1 == 0 && self.changed.1 == 0;
        let margin = if whole { SECONDS } else { TICK };
        let settled = |(secs, nanos): (i64, i64)| {
            let Ok(secs) = u64::try_from(secs) else {
                return secs < 0;
            };
            let nanos = u32::try_from(nanos).unwrap_or_default();
            UNIX_EPOCH
                .checked_add(Duration::new(secs, nanos))
                .and_then(|at| at.checked_add(margin))
                .is_some_and(|at| at < began)
        };
        settled(self.modified) && settled(self.changed)
    }
}

/// The state of the entry at a path. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathState {
    /// An entry with this metadata.
    As(FileMetadataStamp),
    /// The same entry, regardless of its times.
    Same { device: u64, inode: u64, mode: u32 },
    /// No entry.
    Absent,
}

impl PathState {
    /// The state that matches the same entry, regardless of its times.
    pub(crate) fn same(marks: FileMetadataStamp) -> Self {
        Self::Same {
            device: marks.device,
            inode: marks.inode,
            mode: marks.mode,
        }
    }

    /// Returns true if the entry at `path` has this state now.
    pub(crate) fn stands(&self, path: &Path) -> bool {
        let now = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        let now = now.map(|stat| FileMetadataStamp::from(&stat));
        match (self, now) {
            (Self::As(marks), Ok(now)) => *marks == now,
            (Self::Same { .. }, Ok(now)) => *self == Self::same(now),
            (Self::Absent, Err(Errno::NOENT)) => true,
            _ => false,
        }
    }
}

/// Returns true if the file system uses the clock of this machine, and shows changes immediately. Unknown file
/// systems return false.
#[cfg(target_os = "linux")]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "magic numbers have 32 bits"
)]
pub(crate) fn is_local(handle: impl AsFd) -> bool {
    const LOCAL: [u32; 9] = [
        0x0000_EF53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683E, // Btrfs
        0x0102_1994, // tmpfs
        0x8584_58F6, // ramfs
        0x794C_7630, // overlayfs
        0xF2F5_2010, // F2FS
        0x2FC1_2FC1, // ZFS
        0xCA45_1A4E, // bcachefs
    ];
    rustix::fs::fstatfs(handle).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
}

/// Returns true, because the type of the file system is not known on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: impl AsFd) -> bool {
    true
}
