package daemon

import "golang.org/x/sys/unix"

// noSignal prevents SIGPIPE in a process that writes to a daemon that has ended.
const noSignal = unix.MSG_NOSIGNAL
