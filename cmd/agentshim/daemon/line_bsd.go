//go:build unix && !linux

package daemon

// noSignal is 0 on this system: Go programs ignore SIGPIPE on sockets.
const noSignal = 0
