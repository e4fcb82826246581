//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
)

// dial connects to the daemon and checks its user, without package net: its poller and threads cost too much.
func dial(socket string, deadline time.Time) (line, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("%w: making a socket: %w", ErrAbsent, err)
	}
	w := &wire{fd: fd}
	// Connecting blocks while the daemon's backlog is full.
	limit := unix.NsecToTimeval(max(min(silence, time.Until(deadline)/3), time.Millisecond).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrAbsent, err), w.Close())
	}
	for {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w at %s: %w", ErrAbsent, socket, err), w.Close())
	}
	if err := peer.Check(fd); err != nil {
		return nil, errors.Join(fmt.Errorf("%w at %s: %w; agentshim sent nothing to it", ErrElsewhere, socket, err), w.Close())
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrLost, err), w.Close())
	}
	return w, nil
}

// wire is a connected socket for one goroutine.
type wire struct {
	fd       int // -1: it is closed
	deadline time.Time
}

func (w *wire) SetDeadline(t time.Time) error { w.deadline = t; return nil }

// Close closes the socket once. The number may belong to another file after that.
func (w *wire) Close() error {
	fd := w.fd
	w.fd = -1
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(w.fd, b)
		switch {
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		}
		if err := w.wait(err, unix.POLLIN); err != nil {
			return 0, err
		}
	}
}

func (w *wire) Write(b []byte) (n int, err error) {
	for n < len(b) {
		m, err := unix.Write(w.fd, b[n:]) // Go ignores the SIGPIPE of a daemon that has ended
		if err == nil {
			n += m
			continue
		}
		if err := w.wait(err, unix.POLLOUT); err != nil {
			return n, err
		}
	}
	return n, nil
}

// wait waits until the socket is ready, after why reported that it is not.
func (w *wire) wait(why error, events int16) error {
	switch {
	case errors.Is(why, unix.EINTR):
		return nil
	case !errors.Is(why, unix.EAGAIN):
		return why
	}
	for {
		left := time.Until(w.deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		polled := []unix.PollFd{{Fd: int32(w.fd), Events: events}}
		n, err := unix.Poll(polled, int(min(left.Milliseconds()+1, 1<<30)))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
