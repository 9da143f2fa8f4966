//! What only root can show: another user at the socket, a disk that is really full.
//!
//! Without the right to change user or to mount, these tests say so and pass; the feed's and the state
//! folder's own tests show the same decisions by other means.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::controller::{Controller, Said};
use crate::router::Router;
use crate::samples;

/// `nobody`.
const OTHER_USER: u32 = 65_534;
/// Tells [`connects_as_another_user`] where to.
const SOCKET: &str = "SWITCHBOARD_TEST_SOCKET";

/// Runs as a process of its own, see [`is_greeted`].
#[test]
#[ignore = "started by the test that changes the user"]
fn connects_as_another_user() {
    let socket = std::env::var_os(SOCKET).unwrap();
    let said = Controller::connect_unheard(Path::new(&socket)).next();
    assert!(matches!(said, Said::Hello { .. }), "{said:?}");
}

/// Whether another user is greeted at this socket.
fn is_greeted(folder: &Path, router: &Router) -> bool {
    let program = folder.join("test-program");
    if !program.exists() {
        // The folder that it was built in may be closed to other users.
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    }
    let output = Command::new(program)
        .args(["--exact", "privileged::connects_as_another_user", "--ignored"])
        .env(SOCKET, router.socket())
        .current_dir("/")
        .uid(OTHER_USER)
        .gid(OTHER_USER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "{text}");
    output.status.success()
}

#[test]
fn a_user_that_may_not_push_is_not_even_greeted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not shown: only root can change the user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    for (allowed, is_expected) in [(1, false), (OTHER_USER, true)] {
        let router = Router::start_with(folder.path(), vec![allowed]);
        open(router.socket().parent().unwrap());
        assert_eq!(is_greeted(folder.path(), &router), is_expected, "user {allowed} may push");
        let refused = router.counted("switchboard_controllers_refused_total");
        assert_eq!(refused, u64::from(!is_expected));
        // Root may always.
        assert_eq!(Controller::connect(router.socket()).running, None);
    }
    // With nobody else allowed, the file's mode keeps others out.
    let router = Router::start(folder.path());
    let mode = fs::metadata(router.socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!is_greeted(folder.path(), &router));
    assert_eq!(router.counted("switchboard_controllers_refused_total"), 0);
}

/// A small file system of its own, unmounted in the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"]).arg(path);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(path.to_owned()))
    }

    /// Until not one byte more fits.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = fs::File::create(&path).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}

#[test]
fn a_full_disk_refuses_a_snapshot_and_the_old_one_serves() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("state")) else {
        eprintln!("not shown: no right to mount");
        return;
    };
    let definition = samples::definition(&["FEED"], &["127.0.0.1:9001"]);
    let file = |version| samples::file(&definition, version);
    let router = Router::start(folder.path());
    let mut controller = Controller::connect(router.socket());
    controller.push(&file(8));
    let filler = disk.fill();
    assert_eq!(controller.refusal(&file(9)), "state_not_saved");
    assert_eq!(router.version(), 8);
    drop((router, controller));
    // Still full: what is on disk serves.
    let router = Router::start(folder.path());
    assert_eq!(router.version(), 8);
    let mut controller = Controller::connect(router.socket());
    assert_eq!(controller.refusal(&file(9)), "state_not_saved");
    fs::remove_file(filler).unwrap();
    controller.push(&file(9));
    drop((router, controller));
}
