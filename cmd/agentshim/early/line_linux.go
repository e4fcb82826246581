//go:build linux && (amd64 || arm64)

package early

import (
	"syscall"
	"unsafe"
)

// A line is a connection to the daemon.
type line struct{ fd int }

// dial reaches a daemon that is this user's or root's.
func dial(socket string) (l line, ok bool) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return l, false
	}
	l.fd = fd
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		l.close()
		return l, false
	}
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil || int(peer.Uid) != syscall.Geteuid() && peer.Uid != 0 {
		l.close()
		return l, false
	}
	return l, true
}

func (l line) close() { _ = syscall.Close(l.fd) }

// Why the daemon did not answer.
const (
	whyLost = "the daemon did not answer"
	whyElse = "the daemon can not be asked: "
)

// ask asks and waits for the answer until the deadline, as long as there are
// signs of life.
func (l line) ask(request []byte, c *clock, silence, deadline int64) (a answer, why string) {
	if !l.send(request, c, min(c.elapsed()+silence, deadline)) {
		return a, whyLost
	}
	for {
		data, ok := l.message(c, min(c.elapsed()+silence, deadline))
		switch {
		case !ok || len(data) == 0:
			return a, whyLost
		case data[0] == kindBeat:
			continue
		}
		a, ok := decode(data)
		switch {
		case !ok:
			return a, whyLost
		case data[0] == kindElse:
			return a, whyElse + a.log
		}
		return a, ""
	}
}

// send sends a message.
func (l line) send(data []byte, c *clock, until int64) bool {
	for len(data) > 0 {
		n, err := syscall.SendmsgN(l.fd, data, nil, nil, syscall.MSG_NOSIGNAL)
		switch {
		case again(err):
			if !wait(l.fd, pollOut, until-c.elapsed()) {
				return false
			}
			continue
		case err != nil:
			return false
		}
		data = data[n:]
	}
	return true
}

// message reads one message, without the length before it.
func (l line) message(c *clock, until int64) (data []byte, ok bool) {
	head, ok := l.read(4, c, until)
	if !ok {
		return nil, false
	}
	n := int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if n > maxAnswer {
		return nil, false
	}
	return l.read(n, c, until)
}

// read reads n bytes, and takes memory for them as they come.
func (l line) read(n int, c *clock, until int64) (data []byte, ok bool) {
	data = make([]byte, 0, min(n, 64<<10))
	for len(data) < n {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		m, err := syscall.Read(l.fd, data[len(data):min(cap(data), n)])
		switch {
		case again(err):
			if !wait(l.fd, pollIn, until-c.elapsed()) {
				return nil, false
			}
			continue
		case err != nil || m == 0:
			return nil, false
		}
		data = data[:len(data)+m]
	}
	return data, true
}

// again reports whether a system call is to be made again, when it is ready.
func again(err error) bool {
	return err == syscall.EAGAIN || err == syscall.EINTR //nolint:errorlint // a system call returns the number itself, and package errors would come later
}

// What is waited for.
const (
	pollIn  = 1
	pollOut = 4
)

// wait waits until a file is ready, for so many nanoseconds.
func wait(fd int, events int16, left int64) bool {
	end := monotonic() + left
	for {
		if left = end - monotonic(); left <= 0 {
			return false
		}
		polled := struct {
			fd              int32
			events, revents int16
		}{fd: int32(fd), events: events}
		limit := syscall.NsecToTimespec(left)
		n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		switch {
		case errno == 0 && n > 0:
			return true
		case errno != 0 && errno != syscall.EINTR:
			return false
		}
	}
}
