//go:build !linux

package lan

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("network namespaces need Linux")

// A Lan is some hosts on one network. Here there is none.
type Lan struct{}

// A Host is a machine as far as networks go.
type Host struct{}

// Open says that there is none.
func Open(int) (*Lan, error) { return nil, errLinux }

// Hosts are none.
func (*Lan) Hosts() []*Host { return nil }

// Close has nothing to give back.
func (*Lan) Close() error { return nil }

// Addr is no address.
func (*Host) Addr() string { return "" }

// In says that there is no host.
func (*Host) In(func() error) error { return errLinux }

// Lose says that there is no host.
func (*Host) Lose(*Host) error { return errLinux }

// Reach says that there is no host.
func (*Host) Reach(*Host) error { return errLinux }

// Possible says that there can be none.
func Possible() error { return errLinux }

// IsAlone is never so.
func IsAlone() bool { return false }

// Alone says that there is no network of one's own.
func Alone(context.Context, []string, io.Writer, io.Writer) (int, error) { return 0, errLinux }
