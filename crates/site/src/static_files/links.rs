//! The policy on symbolic links.
//!
//! Debian's packages rely on links: an application's directory links to libraries in `/usr/share`. So by default a link
//! out of the document root is followed into the directories of packages (`static.follow_symlinks`) if the user root
//! owns it. Links that a script or an upload could create lead outside only into directories that rules declare public
//! (`links`). A link that is not followed is a 404, and is logged once, up to `MAX_REPORTED` links.

use super::real_path::{is_out_of_descriptors, real_path_of};
use howdah_config::{StaticSettings, Symlinks};
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// In `links` of a rule: matches any number of directories.
const ANY_BELOW: &str = "**";
/// Maximum number of links in a path, as in the kernel (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Maximum number of links that are logged.
const MAX_REPORTED: usize = 1000;

/// The policy on links below one root.
#[derive(Debug)]
pub struct Links {
    policy: Symlinks,
    /// Directories into which links owned by the user root may lead, with all links resolved.
    targets: Vec<PathBuf>,
    /// Directories into which any link may lead. Resolved at each check, because a deployment may move them.
    public: Vec<PathBuf>,
    /// Links that were logged already.
    reported: Mutex<HashSet<PathBuf>>,
}

impl Links {
    /// Creates the policy from the settings. `public` are the directories into which every link is followed.
    pub fn new(settings: &StaticSettings, public: Vec<PathBuf>) -> Self {
        let policy = settings.follow_symlinks.follow;
        Self {
            policy,
            targets: settings
                .follow_symlinks
                .targets
                .iter()
                .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
                .collect(),
            public: if policy == Symlinks::Inside { public } else { Vec::new() },
            reported: Mutex::default(),
        }
    }

    /// The configured policy.
    pub fn policy(&self) -> Symlinks {
        self.policy
    }

    /// `true` if the path `below` the root, which resolves to `real`, may be served. `root` is the resolved root.
    pub fn allow(&self, root: &Path, below: &Path, real: &Path) -> bool {
        match self.policy {
            Symlinks::Always => true,
            Symlinks::Inside => real.starts_with(root) || self.allow_outside(root, below, real),
            Symlinks::Never => real == root.join(below),
        }
    }

    /// Like `allow`, for a path that leads out of the root.
    pub fn allow_outside(&self, root: &Path, below: &Path, real: &Path) -> bool {
        self.policy == Symlinks::Always
            || (self.targets.iter().any(|target| real.starts_with(target))
                && walk(root, below).is_some_and(|way| way.roots))
            || self.public.iter().any(|to| is_below(to, real))
    }

    /// Logs, once per root, that the server has no permission for a path below it.
    pub fn report_closed(&self, root: &Path, path: &Path) {
        if self.reported.lock().insert(root.to_owned()) {
            let (root, path) = (root.display(), path.display());
            tracing::warn!(target: "howdah::static", "permission denied: {path}: treated as missing; the server's user needs access to all of {root}");
        }
    }

    /// Logs that a link is not followed, once per link, for up to `MAX_REPORTED` links.
    pub fn report_link(&self, root: &Path, below: &Path, real: &Path) {
        let Some(link) = walk(root, below).and_then(|way| way.leaves.or(way.last)) else { return };
        let mut reported = self.reported.lock();
        if reported.len() >= MAX_REPORTED || !reported.insert(link.clone()) {
            return;
        }
        drop(reported);
        let (link, to) = (link.display(), real.display());
        let why = match self.policy {
            Symlinks::Never => "`static.follow_symlinks` is \"never\"",
            _ if self.targets.iter().any(|target| real.starts_with(target)) => {
                "root does not own it (see `static.follow_symlinks`)"
            }
            _ => "see `static.follow_symlinks`",
        };
        tracing::warn!(target: "howdah::static", "{link} is a link to {to}, which is not followed: 404; {why}");
    }
}

/// `true` if a resolved path lies in a directory of `links`, in which `**` matches any number of directories.
fn is_below(directory: &Path, real: &Path) -> bool {
    let names: Vec<Component<'_>> = directory.components().collect();
    let Some(at) = names.iter().position(|name| name.as_os_str() == ANY_BELOW) else {
        return directory.canonicalize().is_ok_and(|directory| real.starts_with(directory));
    };
    let (above, name) = (names[..at].iter().collect::<PathBuf>(), &names[at + 1..]);
    let Ok(above) = above.canonicalize() else { return false };
    let Ok(rest) = real.strip_prefix(above) else { return false };
    let rest: Vec<Component<'_>> = rest.components().collect();
    !name.is_empty() && rest.windows(name.len()).any(|part| part == name)
}

/// The links of a path.
struct LinkChain {
    /// `true` if the user root owns all of them.
    roots: bool,
    /// The first that leads out of the root.
    leaves: Option<PathBuf>,
    last: Option<PathBuf>,
}

/// Walks the path `below` the root as the kernel does. `None` if part of it no longer exists.
fn walk(root: &Path, below: &Path) -> Option<LinkChain> {
    let names = |path: &Path| -> Vec<OsString> {
        let name = |part: Component<'_>| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        };
        path.components().filter_map(name).collect()
    };
    let mut way = LinkChain { roots: true, leaves: None, last: None };
    let (mut at, mut rest, mut links) = (root.to_path_buf(), VecDeque::from(names(below)), 0);
    while let Some(name) = rest.pop_front() {
        if name == OsStr::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(name);
        let meta = std::fs::symlink_metadata(&next).ok()?;
        if !meta.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        way.roots &= meta.uid() == 0;
        let target = std::fs::read_link(&next).ok()?;
        // A link that cannot be resolved now may lead anywhere.
        let leaves =
            || real_path_of(&next).map_or_else(|why| is_out_of_descriptors(&why), |real| !real.starts_with(root));
        if way.leaves.is_none() && leaves() {
            way.leaves = Some(next.clone());
        }
        way.last = Some(next);
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_config::LinkPolicy;
    use std::os::unix::fs::symlink;

    fn links(targets: &[&Path]) -> Links {
        let targets = targets.iter().map(|path| path.to_path_buf()).collect();
        let follow_symlinks = LinkPolicy { follow: Symlinks::Inside, targets };
        Links::new(&StaticSettings { follow_symlinks, ..StaticSettings::default() }, Vec::new())
    }

    #[test]
    fn any_link_may_lead_into_a_public_directory_and_no_further() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (root, shared, secret) = (top.join("app/public"), top.join("shared/public"), top.join("shared/secret"));
        for dir in [&root, &shared, &secret] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join("x.css"), "").unwrap();
        }
        // As in a deployment: the directory is behind another link.
        symlink("../shared", top.join("app/storage")).unwrap();
        symlink(top.join("app/storage/public"), root.join("storage")).unwrap();
        symlink("../secret", shared.join("out")).unwrap();
        symlink("../storage/secret", root.join("other")).unwrap();
        let allow = |follow: Symlinks, below: &str| {
            let follow_symlinks = follow.into();
            let settings = StaticSettings { follow_symlinks, ..StaticSettings::default() };
            let policy = Links::new(&settings, vec![root.join("../storage/public"), root.join("../nowhere")]);
            policy.allow(&root, Path::new(below), &root.join(below).canonicalize().unwrap())
        };
        assert!(allow(Symlinks::Inside, "storage/x.css"));
        assert!(!allow(Symlinks::Inside, "storage/out/x.css") && !allow(Symlinks::Inside, "other/x.css"));
        assert!(!allow(Symlinks::Never, "storage/x.css"));
    }

    #[test]
    fn a_double_star_allows_only_directories_of_that_name() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (root, vendor) = (top.join("app/public"), top.join("app/vendor"));
        for dir in [
            "bundles",
            "../vendor/a/b/Resources/public/css",
            "../vendor/a/b/src",
            "../vendor/publicity",
            "../src/public",
        ] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
            std::fs::write(root.join(dir).join("x.css"), "").unwrap();
        }
        symlink("../../vendor/a/b/Resources/public", root.join("bundles/b")).unwrap();
        for (name, to) in [("all", ""), ("src", "a/b/src"), ("publicity", "publicity"), ("own", "../src/public")] {
            symlink(vendor.join(to), root.join("bundles").join(name)).unwrap();
        }
        let allow = |public: &str, below: &str| {
            let policy = Links::new(&StaticSettings::default(), vec![root.join(public)]);
            policy.allow(&root, Path::new(below), &root.join(below).canonicalize().unwrap())
        };
        assert!(allow("../vendor/**/public", "bundles/b/css/x.css"));
        assert!(allow("../vendor/**/Resources/public", "bundles/all/a/b/Resources/public/css/x.css"));
        for other in ["bundles/src/x.css", "bundles/publicity/x.css", "bundles/own/x.css", "bundles/all/a/b/src/x.css"]
        {
            assert!(!allow("../vendor/**/public", other), "{other}");
        }
        assert!(!allow("../vendor/**", "bundles/src/x.css") && !allow("../none/**/public", "bundles/own/x.css"));
    }

    #[test]
    fn links_out_of_the_root_belong_to_root_and_lead_to_a_target() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (root, share, other) = (top.join("root"), top.join("share"), top.join("other"));
        for dir in [&root, &share, &other] {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("x.css"), "").unwrap();
        }
        symlink("../share", root.join("lib")).unwrap();
        symlink(share.join("x.css"), root.join("absolute.css")).unwrap();
        symlink("../other/x.css", root.join("other.css")).unwrap();
        symlink("../other/x.css", share.join("on.css")).unwrap();
        let policy = links(&[&share]);
        let allow = |below: &str| {
            let real = root.join(below).canonicalize().unwrap();
            policy.allow(&root, Path::new(below), &real)
        };
        // The user of the test has created the links.
        let by_root = rustix::process::geteuid().is_root();
        assert!(allow("x.css"));
        assert_eq!((allow("lib/x.css"), allow("absolute.css")), (by_root, by_root));
        assert!(!allow("other.css") && !allow("lib/on.css"));
        if by_root {
            std::os::unix::fs::lchown(root.join("lib"), Some(12345), None).unwrap();
            assert!(!allow("lib/x.css"));
        }
        let way = walk(&root, Path::new("lib/x.css")).unwrap();
        assert_eq!(way.leaves, Some(root.join("lib")));
    }

    #[test]
    fn a_loop_of_links_ends() {
        let top = tempfile::tempdir().unwrap();
        symlink("b", top.path().join("a")).unwrap();
        symlink("a", top.path().join("b")).unwrap();
        assert!(walk(top.path(), Path::new("a")).is_none());
    }
}
