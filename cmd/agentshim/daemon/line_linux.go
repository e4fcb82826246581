package daemon

import "golang.org/x/sys/unix"

// noSignal keeps a daemon that went away from ending whoever writes to it.
const noSignal = unix.MSG_NOSIGNAL
