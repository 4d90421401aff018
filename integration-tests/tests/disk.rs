//! A full disk: no input is taken, nothing is lost, and it is said; with room again the pipeline goes on.
//!
//! The state directory is a small tmpfs of its own, which needs root; the runner of the suite is root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tallyflow_integration_tests::pipeline::Pipeline;
use tallyflow_integration_tests::wait_until;

/// A tmpfs over a directory, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(dir: &Path, size: &str) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let option = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tallyflow-test"]).arg(dir).status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "a tmpfs cannot be mounted: run the suite as root"
        );
        Self(dir.to_owned())
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let file = self.0.join("filler");
        let dd = Command::new("dd")
            .arg("if=/dev/zero")
            .arg(format!("of={}", file.display()))
            .arg("bs=64k")
            .output();
        assert!(dd.is_ok_and(|output| !output.status.success()), "dd stops only where the disk is full");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_is_said() {
    let pipeline = Pipeline::new("disk", 2);
    let disk = SmallDisk::over(&pipeline.tallyflow.state_dir(), "64m");
    let worker = pipeline.start(0);
    pipeline.feed(21, 5_000);
    pipeline.audited();
    let filler = disk.fill();
    // Cells are written behind every two seconds: with this much the next write cannot fit.
    pipeline.feed(22, 5_000);
    wait_until(Duration::from_secs(60), "the worker says that the disk is full", || {
        (worker.stderr().contains("full") && !worker.is_ready()).then_some(())
    });
    std::fs::remove_file(filler).unwrap();
    pipeline.feed(23, 5_000);
    let report = pipeline.audited();
    assert_eq!(report["outcome"], "equal", "{report}");
    wait_until(Duration::from_secs(60), "the worker is ready again", || worker.is_ready().then_some(()));
}
