//go:build linux && (amd64 || arm64)

package early

import "unsafe"

// Calls of the system, without package syscall: that one is initialised after ten
// others, which takes a process that lives for one message a tenth of its time. Its
// functions are there all the same, since the rest of the program links them, and
// system_linux.s goes on to them.

// rawSyscall6 makes a call that does not wait.
func rawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)

// syscall6 makes one that may, and lets the runtime know.
func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)

// What calls fail with that can be made again.
const (
	eintr  = 4
	eagain = 11
)

// The words of calls.
const (
	here         = ^uintptr(99) // a path is as the working folder sees it
	closeOnExec  = 0x80000      // of files and of sockets
	nonBlocking  = 0x800
	unixSocket   = 1
	streamSocket = 1
	socketLevel  = 1
	peerCred     = 17
	noSignal     = 0x4000
)

// again reports whether a call is to be made again, when it is ready.
func again(errno uintptr) bool { return errno == eagain || errno == eintr }

// openFile opens a file for reading; path ends with a zero.
func openFile(path string) (fd int, ok bool) {
	r, _, errno := rawSyscall6(sysOpenat, here, uintptr(unsafe.Pointer(unsafe.StringData(path))), closeOnExec, 0, 0, 0)
	return int(r), errno == 0
}

func closeFile(fd int) { rawSyscall6(sysClose, uintptr(fd), 0, 0, 0, 0, 0) }

// readNow reads from what is ready, or says at once that it is not.
func readNow(fd int, b []byte) (n int, errno uintptr) {
	r, _, errno := rawSyscall6(sysRead, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	return int(r), errno
}

// readFrom reads from what may keep it waiting, and writeTo writes to such.
func readFrom(fd int, b []byte) (n int, errno uintptr) {
	r, _, errno := syscall6(sysRead, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	return int(r), errno
}

func writeTo(fd int, b []byte) (n int, errno uintptr) {
	r, _, errno := syscall6(sysWrite, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	return int(r), errno
}

// sendNow sends over a socket as much as there is room for. Where nobody listens
// any more that is an error, and no signal.
func sendNow(fd int, b []byte) (n int, errno uintptr) {
	r, _, errno := rawSyscall6(sysSendto, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), noSignal, 0, 0)
	return int(r), errno
}

// chance fills b with random bytes.
func chance(b []byte) bool {
	n, _, errno := syscall6(sysGetrandom, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0, 0)
	return errno == 0 && int(n) == len(b)
}

// exit ends the process.
func exit(code int) {
	for {
		rawSyscall6(sysExitGroup, uintptr(code), 0, 0, 0, 0, 0)
	}
}

// address is that of a unix socket.
type address struct {
	family uint16
	path   [108]byte
}

// connect reaches who listens at a path.
func connect(path string) (fd int, ok bool) {
	to := address{family: unixSocket}
	if len(path) >= len(to.path) {
		return 0, false
	}
	copy(to.path[:], path)
	r, _, errno := rawSyscall6(sysSocket, unixSocket, streamSocket|closeOnExec|nonBlocking, 0, 0, 0, 0)
	if errno != 0 {
		return 0, false
	}
	size := unsafe.Offsetof(to.path) + uintptr(len(path)) + 1
	if _, _, errno = rawSyscall6(sysConnect, r, uintptr(unsafe.Pointer(&to)), size, 0, 0, 0); errno != 0 {
		closeFile(int(r))
		return 0, false
	}
	return int(r), true
}

// friend reports whether the other end of a socket is this user's, or root's.
func friend(fd int) bool {
	var peer struct{ pid, uid, gid uint32 }
	size := uint32(unsafe.Sizeof(peer))
	_, _, errno := rawSyscall6(sysGetsockopt, uintptr(fd), socketLevel, peerCred, uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)), 0)
	own, _, _ := rawSyscall6(sysGeteuid, 0, 0, 0, 0, 0, 0)
	return errno == 0 && size == uint32(unsafe.Sizeof(peer)) && (peer.uid == uint32(own) || peer.uid == 0)
}

// moment is a time as the system has it.
type moment struct{ sec, nsec int64 }

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
		limit := moment{left / second, left % second}
		n, _, errno := syscall6(sysPpoll, uintptr(unsafe.Pointer(&polled)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		switch {
		case errno == 0 && n > 0:
			return true
		case errno != 0 && errno != eintr:
			return false
		}
	}
}
