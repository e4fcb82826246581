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

// A Fault is a fault at members of a field.
type Fault struct {
	// Kind is the kind of the fault.
	Kind Kind `json:"kind"`
	// Member is a member's name or a glob. Each time, the schedule draws one of the members
	// that match. All: the fault affects all of them at once.
	Member string `json:"member"`
	All    bool   `json:"all,omitzero"`
	// At is when the fault begins, from the beginning of the load. Every is the interval at
	// which it is repeated.
	At    schema.Duration `json:"at,omitzero"`
	Every schema.Duration `json:"every,omitzero"`
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
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !slices.Contains(All(), f.Kind) {
		say("unknown kind of fault %q; write one of %v", f.Kind, Kinds())
	}
	if f.Member == "" {
		say("the fault names no member; write a name or a glob such as \"worker-*\"")
	} else if _, err := path.Match(f.Member, ""); err != nil {
		say("the member %q is not a valid glob: %v", f.Member, err)
	} else if members != nil && len(Matching(f.Member, members)) == 0 {
		say("no member has the name %q; write one of %s", f.Member, strings.Join(members, ", "))
	}
	return append(append(wrong, f.checkTimes()...), f.checkNetwork()...)
}

func (f Fault) checkTimes() (wrong []string) {
	if f.At < 0 || f.Every < 0 || f.For < 0 {
		wrong = append(wrong, fmt.Sprintf("the times of a fault cannot be negative: at is %v, every is %v, for is %v", f.At, f.Every, f.For))
	}
	if f.Kind.lasts() && f.For == 0 && slices.Contains(All(), f.Kind) {
		wrong = append(wrong, fmt.Sprintf("a fault of the kind %s needs a duration: write for: 2s", f.Kind))
	}
	if f.Kind == Reset && f.For != 0 {
		wrong = append(wrong, "a reset has no duration; remove for:")
	}
	if f.Every > 0 && f.Every <= f.For {
		wrong = append(wrong, fmt.Sprintf("a fault that lasts %v cannot start every %v; write a longer every:", f.For, f.Every))
	}
	return wrong
}

func (f Fault) checkNetwork() (wrong []string) {
	switch {
	case f.Kind == Delay && f.Latency <= 0:
		wrong = append(wrong, "a delay needs its latency: write latency: 50ms")
	case f.Kind != Delay && (f.Latency != 0 || f.Jitter != 0):
		wrong = append(wrong, fmt.Sprintf("latency and jitter belong only to a delay, not to a fault of the kind %s", f.Kind))
	case f.Jitter < 0:
		wrong = append(wrong, fmt.Sprintf("the jitter %v cannot be negative", f.Jitter))
	}
	switch {
	case f.Kind == Slow && f.Rate <= 0:
		wrong = append(wrong, "a slow network needs its rate in bytes per second: write rate: 65536")
	case f.Kind != Slow && f.Rate != 0:
		wrong = append(wrong, fmt.Sprintf("rate belongs only to slow, not to a fault of the kind %s", f.Kind))
	}
	return wrong
}

// Conditions returns the conditions of a link during the fault.
func (f Fault) Conditions() Conditions {
	return Conditions{
		Latency: f.Latency.Std(), Jitter: f.Jitter.Std(), Rate: f.Rate, Cut: f.Kind == Cut,
	}
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

// Pick returns the members that the fault affects this time: one of those that match, or
// all of them.
func (f Fault) Pick(members []string, random *rand.Rand) []string {
	all := Matching(f.Member, members)
	if f.All || len(all) < 2 {
		return all
	}
	return []string{all[random.IntN(len(all))]}
}

// away returns how long a killed process stays down.
func (f Fault) away() time.Duration {
	if f.For > 0 {
		return f.For.Std()
	}
	return rand.N(awayMost)
}

// awayMost is the default limit for how long a killed process stays down.
const awayMost = time.Second
