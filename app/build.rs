//! Lets the program find libggml beside itself, in a package's `lib/audiocpp`, or in this build.
fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    for dir in ["$ORIGIN", "$ORIGIN/../lib/audiocpp"] {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{dir}");
    }
    if let Ok(lib) = std::env::var("DEP_AUDIOCPP_GGML_LIB") {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{lib}");
    }
}
