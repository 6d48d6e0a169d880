//! The two ends of the way between the server and a worker.
//!
//! On Unix it is a socket at the worker's standard input, used both ways; its standard output
//! belongs to libraries that print. Elsewhere it is standard input and output.

#[cfg(unix)]
pub use unix::*;

#[cfg(not(unix))]
pub use other::*;

#[cfg(unix)]
mod unix {
    use std::{
        io::{self, Read, Write},
        os::{fd::AsFd, unix::net::UnixStream},
        process::Stdio,
    };

    use tokio::process::{Child, Command};

    /// The server's end.
    pub type Stream = tokio::net::UnixStream;

    /// Starts `command` with the worker's end as its standard input.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Stream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = Stream::from_std(ours)?;
        command
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal is for the server, which lets its workers finish.
            .process_group(0);
        let child = command.spawn()?;
        // The command holds a copy of the worker's end; as long as it does, the end of the worker
        // would go unnoticed.
        command.stdin(Stdio::null());
        Ok((child, stream))
    }

    /// The worker's end.
    pub fn of_worker() -> io::Result<(impl Read, impl Write + Send + 'static)> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok((socket.try_clone()?, socket))
    }
}

#[cfg(not(unix))]
mod other {
    use std::{
        io::{self, Read, Write},
        process::Stdio,
    };

    use tokio::process::{Child, ChildStdin, ChildStdout, Command};

    /// The server's end.
    pub type Stream = tokio::io::Join<ChildStdout, ChildStdin>;

    /// Starts `command` with the worker's end as its standard input and output.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Stream)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let input = child.stdin.take().ok_or_else(closed)?;
        let output = child.stdout.take().ok_or_else(closed)?;
        Ok((child, tokio::io::join(output, input)))
    }

    /// The worker's end.
    pub fn of_worker() -> io::Result<(impl Read, impl Write + Send + 'static)> {
        Ok((io::stdin(), io::stdout()))
    }
}
