package e2e_test

import (
	"io"
	"os"
	"strconv"
	"syscall"
)

// lifelineVar names the descriptor of a pipe whose other end the test holds.
const lifelineVar = "E2E_LIFELINE"

// holdLifeline ends this process when the test that started it is gone, also
// one that was killed and could not clean up.
func holdLifeline() {
	fd, err := strconv.Atoi(os.Getenv(lifelineVar))
	if err != nil {
		return
	}
	_ = os.Unsetenv(lifelineVar)
	syscall.CloseOnExec(fd)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(uintptr(fd), "lifeline"))
		os.Exit(3)
	}()
}
