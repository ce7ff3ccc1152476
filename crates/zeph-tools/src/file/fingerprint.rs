//! The marks by which a file is told from what it was, and when they may be trusted.
//!
//! A content is taken for unchanged when device, inode, mode, size, mtime and ctime are. That is
//! right only for what was last changed some time before it was read: the clock of a file system
//! stands still for a while, and a second change within the same tick leaves no trace (Git calls
//! such an entry "racily clean"). And it is right only where the marks are kept on this machine.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;

/// How much older than the reading a change has to be: twice the slowest tick of a Linux kernel.
const TICK: Duration = Duration::from_millis(20);
/// The same where a file system seems to know whole seconds alone (FAT knows every second one).
const SECONDS: Duration = Duration::from_secs(3);

/// How an entry of a directory stood.
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
    /// All of it, in an order that stays.
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

    /// Whether a change that comes after `began` cannot leave these marks.
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

/// How something stood at a path; links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathState {
    /// With these marks.
    As(FileMetadataStamp),
    /// The same entry, whatever its times.
    Same { device: u64, inode: u64, mode: u32 },
    /// It did not.
    Absent,
}

impl PathState {
    /// The same entry as that with these marks.
    pub(crate) fn same(marks: FileMetadataStamp) -> Self {
        Self::Same {
            device: marks.device,
            inode: marks.inode,
            mode: marks.mode,
        }
    }

    /// Whether it stands so at `path` now.
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

/// Whether the file system keeps its times by the clock of this machine, and tells of a change at
/// once. What is not known does not.
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

/// Whether the file system keeps its times by the clock of this machine: not found out here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: impl AsFd) -> bool {
    true
}
