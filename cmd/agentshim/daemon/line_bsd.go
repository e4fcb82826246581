//go:build unix && !linux

package daemon

// noSignal is nothing here: Go programs take no harm from that signal on sockets.
const noSignal = 0
