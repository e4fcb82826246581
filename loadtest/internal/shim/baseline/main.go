// Command baseline is the smallest hook that starts once per call: a Go program that sends
// its input to a unix socket and prints the answer.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	if err := ask(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "baseline:", err)
		os.Exit(1)
	}
}

func ask(socket string) error {
	event, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(event); err != nil {
		return err
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, c)
	return err
}
