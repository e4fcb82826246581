package clients_test

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// tie has a process end with the one that starts it, and lead a group of its own.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// TestNothingButLoopback holds what all other tests rely on.
func TestNothingButLoopback(t *testing.T) {
	if os.Getenv(programsVar) == "" {
		t.Skip("NO CLIENT IS TRIED, so there is nothing to be kept from the network")
	}
	if os.Getenv(openVar) != "" {
		t.Skip("THERE IS NO NETWORK NAMESPACE HERE: the isolation of clients was NOT tested")
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			t.Errorf("the interface %s leads out of the namespace", i.Name)
		}
	}
}
