// Package peer checks the user at the other end of a unix socket. Another user can create a
// socket at the daemon's path, or connect through a folder that is open by mistake. A hook's
// answer decides about tool calls, so both ends check.
package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// ErrStranger means that the peer is another user.
var ErrStranger = errors.New("the other end of the socket belongs to another user")

// Check returns an error unless the other end of a connected unix socket is this user or root.
func Check(fd int) error {
	uid, err := UID(fd)
	if err != nil {
		return fmt.Errorf("finding the user at the other end of the socket: %w", err)
	}
	return allowed(uid, os.Geteuid())
}

func allowed(uid, own int) error {
	if uid != own && uid != 0 {
		return fmt.Errorf("%w: the user %d, and this is %d", ErrStranger, uid, own)
	}
	return nil
}

// CheckConn is like Check, for a connection of package net.
func CheckConn(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var checked error
	if err := raw.Control(func(fd uintptr) { checked = Check(int(fd)) }); err != nil {
		return err
	}
	return checked
}

// IsLocal reports whether a host, perhaps with a port, is this machine.
func IsLocal(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
