//! Files of this machine that requests name, as the ancestor's clients do: below allowed folders
//! alone.

use std::path::{Path, PathBuf};

use super::{
    app::App,
    error::{ApiError, Result},
};

/// The file that `name` in `field` means. Whatever is wrong with it, the answer is the same, so
/// that nobody can find out which files there are.
pub fn file(app: &App, field: &str, name: &str) -> Result<PathBuf> {
    let roots = &app.settings.allowed_audio_roots;
    if roots.is_empty() {
        return Err(ApiError::unsupported(
            field,
            format!(
                "`{field}` names a file of the server, which is off; send the file itself, or set \
                 `allowed_audio_roots`"
            ),
        ));
    }
    let found = resolved(roots, name);
    found.ok_or_else(|| {
        let message = format!("`{field}` is not a file below `allowed_audio_roots`");
        ApiError::not_found("file_not_found", message).param(field)
    })
}

fn resolved(roots: &[PathBuf], name: &str) -> Option<PathBuf> {
    if name.contains('\0') {
        return None;
    }
    let asked = Path::new(name);
    roots.iter().find_map(|root| {
        // Links are followed before the comparison.
        let root = root.canonicalize().ok()?;
        let path = root.join(asked).canonicalize().ok()?;
        (path.starts_with(&root) && path.is_file()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_roots_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a.wav"), "a").unwrap();
        std::fs::write(folder.path().join("secret.wav"), "s").unwrap();
        let roots = vec![root.clone()];
        let inside = root.canonicalize().unwrap().join("sub/a.wav");
        assert_eq!(resolved(&roots, "sub/a.wav"), Some(inside.clone()));
        assert_eq!(
            resolved(&roots, &inside.to_string_lossy()),
            Some(inside.clone())
        );
        assert_eq!(resolved(&roots, "sub/../sub/a.wav"), Some(inside));
        let secret = folder.path().join("secret.wav");
        for name in [
            "../secret.wav",
            "sub",
            "",
            ".",
            "/etc/passwd",
            "a\0b",
            "%2e%2e/secret.wav",
        ] {
            assert_eq!(resolved(&roots, name), None, "{name:?}");
        }
        assert_eq!(resolved(&roots, &secret.to_string_lossy()), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&secret, root.join("link.wav")).unwrap();
            assert_eq!(resolved(&roots, "link.wav"), None);
        }
    }
}
