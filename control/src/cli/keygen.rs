//! `keygen`: a secret file and a public one.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use switchboard_shared::snapshot::SecretKey;

use super::show;

#[derive(Args, Debug)]
pub(super) struct KeygenArguments {
    /// Where the secret key goes; the public one goes beside it, with `.pub` behind the name
    #[arg(long, default_value = "signing.key", value_name = "FILE")]
    secret: PathBuf,
    /// Where the public key goes instead
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,
}

/// A file that exists is never touched: a key that is overwritten is a fleet that trusts nobody.
pub(super) fn keygen(arguments: &KeygenArguments) -> anyhow::Result<()> {
    let secret_path = &arguments.secret;
    let public_path = arguments.public.clone().unwrap_or_else(|| {
        let mut name = secret_path.clone().into_os_string();
        name.push(".pub");
        PathBuf::from(name)
    });
    anyhow::ensure!(
        fs::symlink_metadata(&public_path).is_err(),
        "{} exists; keygen overwrites nothing",
        public_path.display()
    );
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).context("the operating system has no randomness")?;
    let key = SecretKey::from_seed(&seed);
    seed.fill(0);
    create(secret_path, 0o600, &key.to_line())?;
    create(&public_path, 0o644, &format!("{}\n", key.public()))?;
    show::print(&format!(
        "key id  {}\nsecret  {}  (for `serve --signing-key`; keep it)\npublic  {}  (for each \
         router's trusted keys)\n",
        key.public().id(),
        secret_path.display(),
        public_path.display()
    ))?;
    Ok(())
}

fn create(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            anyhow::bail!("{} exists; keygen overwrites nothing", path.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot make {}", path.display())),
    };
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}
