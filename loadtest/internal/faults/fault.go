package faults

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	// Kill is kill -9 of the whole process group; a new process takes its place.
	Kill Kind = "kill"
	// Stop is SIGSTOP: the process exists but does not run until it gets SIGCONT.
	Stop Kind = "stop"
	// Delay makes the member's network slower, both ways.
	Delay Kind = "delay"
	// Slow limits the bandwidth of the member's network, both ways.
	Slow Kind = "slow"
	// Cut blocks the member's network; its connections stay open.
	Cut Kind = "cut"
	// Reset closes all connections of the member at once.
	Reset Kind = "reset"
	// Restart ends the process in order, and starts the next one.
	Restart Kind = "restart"
	// Part blocks all traffic between the member and its peers, the other brokers of a
	// cluster. Other connections of the member are not affected.
	Part Kind = "part"
	// Mute blocks traffic from the member to its peers, and Deafen traffic from the peers
	// to the member.
	Mute   Kind = "mute"
	Deafen Kind = "deafen"
)

// Kinds returns the kinds of faults that any member can have.
func Kinds() []Kind { return []Kind{Kill, Stop, Delay, Slow, Cut, Reset} }

// All returns Kinds, Restart, and the kinds that only a broker of a cluster can have.
func All() []Kind { return append(Kinds(), Restart, Part, Mute, Deafen) }

// OnWire reports whether the fault affects the network between peers, which requires a
// [Host].
func (k Kind) OnWire() bool { return k == Part || k == Mute || k == Deafen }

// OnLink reports whether the fault affects the member's network, which requires a [Link].
func (k Kind) OnLink() bool { return k == Delay || k == Slow || k == Cut || k == Reset }

// lasts reports whether the fault needs a duration.
func (k Kind) lasts() bool { return k != Kill && k != Restart && k != Reset }

// A Fault is a fault at a member of a field.
type Fault struct {
	Kind Kind `json:"kind"`
	// Member is a member's name or a glob, of which the schedule draws one member.
	Member string `json:"member"`
	// At is when the fault begins, from the beginning of the load.
	At schema.Duration `json:"at,omitzero"`
	// For is how long the fault lasts. A killed process is restarted after that time; 0: a
	// short time, drawn at random.
	For schema.Duration `json:"for,omitzero"`
	// Latency is the delay of each way. Jitter is the highest random addition to it.
	Latency schema.Duration `json:"latency,omitzero"`
	Jitter  schema.Duration `json:"jitter,omitzero"`
	// Rate is the bandwidth of a slow network, in bytes per second and direction.
	Rate int64 `json:"rate,omitzero"`
}

func (f Fault) String() string {
	switch f.Kind {
	case Kill:
		return "kill -9 " + f.Member
	case Delay:
		return fmt.Sprintf("delay %s by %v", f.Member, f.Latency)
	case Slow:
		return fmt.Sprintf("slow %s to %d B/s", f.Member, f.Rate)
	default:
		return string(f.Kind) + " " + f.Member
	}
}

// Check returns sentences about what is wrong with the fault in a field with these members.
// If members is nil, they are not known yet.
func (f Fault) Check(members []string) []string {
	var wrong []string
	known := slices.Contains(All(), f.Kind)
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{!known, fmt.Sprintf("unknown kind of fault %q; write one of %v", f.Kind, Kinds())},
		{f.Member == "", `the fault names no member; write a name or a glob such as "worker-*"`},
		{f.Member != "" && members != nil && len(Matching(f.Member, members)) == 0, fmt.Sprintf("no member has the name %q; write one of %s", f.Member, strings.Join(members, ", "))},
		{f.At < 0 || f.For < 0 || f.Jitter < 0, fmt.Sprintf("the times of a fault cannot be negative: at is %v, for is %v, jitter is %v", f.At, f.For, f.Jitter)},
		{known && f.Kind.lasts() && f.For == 0, fmt.Sprintf("a fault of the kind %s needs a duration: write for: 2s", f.Kind)},
		{f.Kind == Reset && f.For != 0, "a reset has no duration; remove for:"},
		{f.Kind == Delay && f.Latency <= 0, "a delay needs its latency: write latency: 50ms"},
		{f.Kind != Delay && (f.Latency != 0 || f.Jitter != 0), fmt.Sprintf("latency and jitter belong only to a delay, not to a fault of the kind %s", f.Kind)},
		{f.Kind == Slow && f.Rate <= 0, "a slow network needs its rate in bytes per second: write rate: 65536"},
		{f.Kind != Slow && f.Rate != 0, fmt.Sprintf("rate belongs only to slow, not to a fault of the kind %s", f.Kind)},
	} {
		if rule.broken {
			wrong = append(wrong, rule.text)
		}
	}
	return wrong
}

// Conditions returns the conditions of a link during the fault.
func (f Fault) Conditions() Conditions {
	return Conditions{Latency: f.Latency.Std(), Jitter: f.Jitter.Std(), Rate: f.Rate, Cut: f.Kind == Cut}
}

// Matching returns the members that match a name or a glob.
func Matching(glob string, members []string) []string {
	var all []string
	for _, m := range members {
		if ok, err := path.Match(glob, m); err == nil && ok {
			all = append(all, m)
		}
	}
	return all
}

// away returns how long a killed process stays down.
func (f Fault) away() time.Duration {
	const most = time.Second
	if f.For > 0 {
		return f.For.Std()
	}
	return rand.N(most)
}
