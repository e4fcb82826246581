package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// bridge is the bridge between the networks. It is in the network of [Alone].
	bridge = "lan"
	// card is the network card of each host.
	card = "eth0"
	// here is the address of this process, which is not on a host, on the bridge.
	here = "127.1.0.254"
	// nobody is a hardware address that no card has. Traffic to it is lost.
	nobody = "02:00:00:00:00:fe"
)

// A Host has its own network, like a machine. Processes that start on it, and sockets that
// it opens, are in that network. It ends with the last process in it.
type Host struct {
	addr  string
	ns    *os.File
	peers []*Host // and itself
}

// OpenHosts opens hosts that a bridge connects. The program must be in its own network: see
// [Alone].
func OpenHosts(n int) ([]*Host, error) {
	if !IsAlone() {
		return nil, errors.New("hosts need their own network namespace; run the program with faults.Alone")
	}
	if err := errors.Join(loopback(), ip("link add "+bridge+" type bridge"), local(bridge),
		ip("addr add "+here+"/24 dev "+bridge), ip("link set "+bridge+" up")); err != nil {
		return nil, fmt.Errorf("creating a network of %d hosts: %w", n, err)
	}
	all := make([]*Host, n)
	for i := range all {
		h, err := newHost(i + 1)
		if err != nil {
			return nil, fmt.Errorf("creating host %d: %w", i+1, err)
		}
		h.peers, all[i] = all, h
	}
	return all, nil
}

// newHost creates a network with a link to the bridge.
func newHost(n int) (*Host, error) {
	h := &Host{addr: fmt.Sprintf("127.1.0.%d", n)}
	if err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("creating a network namespace: %w", err)
		}
		h.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		return nil, err
	}
	port := fmt.Sprint("port", n)
	at := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.ns.Fd())
	if err := errors.Join(ip("link add "+port+" type veth peer name "+card+" netns "+at), ip("link set "+port+" master "+bridge+" up")); err != nil {
		return nil, errors.Join(err, h.ns.Close())
	}
	if err := h.In(func() error {
		return errors.Join(loopback(), local(card), ip("addr add "+h.addr+"/24 dev "+card), ip("link set "+card+" up"))
	}); err != nil {
		return nil, errors.Join(err, h.ns.Close())
	}
	return h, nil
}

// Addr is the host's address.
func (h *Host) Addr() string { return h.addr }

// In calls do on the host.
func (h *Host) In(do func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the network of %s: %w", h.addr, err)
		}
		return do()
	})
}

// Part drops the packets between the host and the other hosts until [Host.Join]. sends
// selects those from the host, and receives those to it.
func (h *Host) Part(sends, receives bool) error {
	return h.each(func(other *Host) (err error) {
		if sends {
			err = h.lose(other)
		}
		if receives {
			err = errors.Join(err, other.lose(h))
		}
		return err
	})
}

// Join undoes Part.
func (h *Host) Join() error {
	return h.each(func(other *Host) error { return errors.Join(h.reach(other), other.reach(h)) })
}

func (h *Host) each(do func(other *Host) error) error {
	var errs []error
	for _, other := range h.peers {
		if other != h {
			errs = append(errs, do(other))
		}
	}
	return errors.Join(errs...)
}

// lose drops the packets from the host to another one. reach undoes that.
func (h *Host) lose(to *Host) error {
	return h.In(func() error {
		return ip("neigh replace " + to.addr + " lladdr " + nobody + " dev " + card + " nud permanent")
	})
}

func (h *Host) reach(to *Host) error {
	return h.In(func() error { return ip("neigh flush to " + to.addr + " dev " + card + " nud permanent") })
}

// onThread calls do on a thread that then ends: a change of the thread's network affects no
// other goroutine.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks it
		done <- do()
	}()
	return <-done
}

// loopback brings the interface up with one address only: the other addresses of
// 127.0.0.0/8 belong to the hosts.
func loopback() error {
	return errors.Join(ip("link set lo up"), ip("addr replace 127.0.0.1/32 dev lo"), ip("addr del 127.0.0.1/8 dev lo"))
}

// local lets an interface use addresses of 127.0.0.0/8.
func local(device string) error {
	return os.WriteFile("/proc/sys/net/ipv4/conf/"+device+"/route_localnet", []byte("1"), 0)
}

// ip runs the command ip in the network of this thread.
func ip(words string) error {
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", words, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// HostsMissing returns what the machine lacks for hosts; nil: it lacks nothing.
func HostsMissing() error {
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("the command ip is missing: %w; install iproute2", err)
	}
	c := exec.Command("ip", "link", "add", bridge, "type", "bridge")
	c.SysProcAttr = apart()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot create network namespaces with bridges: %w: %s; run the command as root, or enable user namespaces", err, strings.TrimSpace(string(out)))
	}
	return nil
}
