package clients_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolate gives a process a network of its own, in which it may raise the
// loopback interface.
func isolate(cmd *exec.Cmd) {
	a := cmd.SysProcAttr
	a.Cloneflags = syscall.CLONE_NEWNET
	if os.Geteuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
}

// tie has a process end with the one that starts it, and lead a group of its own.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// raiseLoopback switches the loopback interface on, which a new namespace has
// switched off.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// TestNothingButLoopback holds what all other tests rely on.
func TestNothingButLoopback(t *testing.T) {
	if os.Getenv(programsVar) == "" {
		t.Skip("NO CLIENT IS TRIED, so there is nothing to be kept from the network")
	}
	if os.Getenv(openVar) != "" {
		t.Skip("THERE IS NO NETWORK NAMESPACE HERE: that clients reach nobody was NOT tested")
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
