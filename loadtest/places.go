package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// places returns an error if the run cannot write one of its outputs. It is called before
// the run, because after ten minutes of measuring it is too late to report a mistyped name.
func (f *measuring) places() error {
	var errs []error
	for _, file := range []string{f.json, f.html, f.log} {
		errs = append(errs, writable(file))
	}
	for _, dir := range []string{f.svg, f.profiles} {
		errs = append(errs, writableDir(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return usage{err}
	}
	return nil
}

// writable returns an error if a file cannot be written; "" is no file. It keeps the file's
// content.
func writable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	created := err == nil
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(file, os.O_WRONLY, 0)
	}
	if err != nil {
		return fmt.Errorf("cannot write the file: %w; name a file in an existing folder", err)
	}
	err = f.Close()
	if created {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// writableDir makes a directory and returns an error if files cannot be created in it; "" is
// no directory.
func writableDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder: %w; name a folder that you can write to", err)
	}
	return writable(filepath.Join(dir, ".writable"))
}

// loopback returns an error if processes of this machine do not reach each other. All of
// them would otherwise try for half a minute.
func loopback(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		defer l.Close()
		var c net.Conn
		if c, err = (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", l.Addr().String()); err == nil {
			return c.Close()
		}
	}
	return fmt.Errorf("the processes of a run cannot connect to each other on 127.0.0.1: %w; enable the loopback interface with `ip link set lo up`", err)
}
