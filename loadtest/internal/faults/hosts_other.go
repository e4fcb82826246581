//go:build !linux

package faults

import (
	"context"
	"errors"
	"io"
)

var errLinux = errors.New("network namespaces need Linux")

// A Host needs Linux.
type Host struct{}

// OpenHosts returns an error: hosts need Linux.
func OpenHosts(int) ([]*Host, error) { return nil, errLinux }

// HostsMissing returns an error: hosts need Linux.
func HostsMissing() error { return errLinux }

// Addr returns "".
func (*Host) Addr() string { return "" }

// In returns an error: hosts need Linux.
func (*Host) In(func() error) error { return errLinux }

// Part returns an error: hosts need Linux.
func (*Host) Part(bool, bool) error { return errLinux }

// Join returns an error: hosts need Linux.
func (*Host) Join() error { return errLinux }

// IsAlone returns false.
func IsAlone() bool { return false }

// Alone returns an error: it needs Linux.
func Alone(context.Context, []string, io.Writer, io.Writer) (int, error) { return 0, errLinux }
