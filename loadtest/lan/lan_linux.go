package lan

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
	// bridge is what joins the networks, in the one that the program is alone in.
	bridge = "lan"
	// card is the network card of each host.
	card = "eth0"
	// here is the address of whoever is no host, on the bridge.
	here = "127.1.0.254"
	// nobody is a hardware address that no card has.
	nobody = "02:00:00:00:00:fe"
)

// A Lan is some hosts on one network.
type Lan struct{ hosts []*Host }

// A Host is a machine as far as networks go.
type Host struct {
	addr string
	ns   *os.File
}

// Open makes so many hosts. The program must be in a network of its own: see [Alone].
func Open(hosts int) (*Lan, error) {
	if !IsAlone() {
		return nil, errors.New("a LAN needs its own network namespace; run the program with lan.Alone")
	}
	l := &Lan{}
	if err := l.open(hosts); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a network of %d hosts: %w", hosts, err), l.Close())
	}
	return l, nil
}

func (l *Lan) open(hosts int) error {
	if err := errors.Join(loopback(), ip("link add "+bridge+" type bridge"), local(bridge),
		ip("addr add "+here+"/24 dev "+bridge), ip("link set "+bridge+" up")); err != nil {
		return err
	}
	for i := range hosts {
		h, err := newHost(i + 1)
		if err != nil {
			return err
		}
		l.hosts = append(l.hosts, h)
	}
	return nil
}

// newHost makes a network with a cable to the bridge.
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

// Hosts are all of them.
func (l *Lan) Hosts() []*Host { return l.hosts }

// Close gives the networks back, which end with the last process in them.
func (l *Lan) Close() error {
	var errs []error
	for _, h := range l.hosts {
		errs = append(errs, h.ns.Close())
	}
	return errors.Join(errs...)
}

// Addr is the host's address.
func (h *Host) Addr() string { return h.addr }

// In does something on the host: processes that do starts, and sockets that it
// opens, are the host's.
func (h *Host) In(do func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the network of %s: %w", h.addr, err)
		}
		return do()
	})
}

// Lose has all that the host sends to another get lost on the way, until [Host.Reach].
func (h *Host) Lose(to *Host) error {
	return h.In(func() error {
		return ip("neigh replace " + to.addr + " lladdr " + nobody + " dev " + card + " nud permanent")
	})
}

// Reach ends what [Host.Lose] began, if it did.
func (h *Host) Reach(to *Host) error {
	return h.In(func() error { return ip("neigh flush to " + to.addr + " dev " + card + " nud permanent") })
}

// onThread does something on a thread that ends with it: its network is nobody
// else's.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks it
		done <- do()
	}()
	return <-done
}

// loopback brings the interface up with one address alone: the others of its kind
// are the hosts'.
func loopback() error {
	return errors.Join(ip("link set lo up"), ip("addr replace 127.0.0.1/32 dev lo"), ip("addr del 127.0.0.1/8 dev lo"))
}

// local has an interface carry addresses of 127.0.0.0/8.
func local(device string) error {
	return os.WriteFile("/proc/sys/net/ipv4/conf/"+device+"/route_localnet", []byte("1"), 0)
}

// ip runs the command of that name, in the network of this thread.
func ip(words string) error {
	if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", words, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Possible says what is missing for a network of one's own; nil: nothing is.
func Possible() error {
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
