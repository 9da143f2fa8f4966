//! Points where a test build can be made to crash, to show that nothing is lost there.

/// Crashes like `kill -9` where `SWITCHBOARD_CONTROL_CRASH_AT` names this point. Only builds with
/// debug assertions look at it.
pub(crate) fn point(name: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("SWITCHBOARD_CONTROL_CRASH_AT").is_some_and(|at| at == name) {
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _: &str = name;
}
