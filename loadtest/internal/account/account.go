// Package account divides the processor time of a process among the purposes of its work, by a CPU
// profile.
package account

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/hookfabric/hookfabric/schema"
)

// A Purpose is what work is for.
type Purpose string

// The purposes, in the order of a report.
const (
	Sockets  Purpose = "reading and writing sockets"
	Server   Purpose = "NATS server"
	Client   Purpose = "NATS client"
	HandOffs Purpose = "hand-offs between goroutines"
	Memory   Purpose = "allocation and garbage collection"
	JSON     Purpose = "JSON"
	Record   Purpose = "record"
	Reports  Purpose = "metrics and feed"
	Limits   Purpose = "limits and admission"
	Planning Purpose = "planning and folding"
	Hooks    Purpose = "running hooks"
	Steps    Purpose = "other steps of an event"
	Other    Purpose = "other"
)

// Purposes lists all purposes in the order of a report.
func Purposes() []Purpose {
	return []Purpose{Server, Client, Sockets, HandOffs, Memory, JSON, Record, Reports, Limits, Planning, Hooks, Steps, Other}
}

// project begins the names of the functions of this project.
const project = "github.com/hookfabric/hookfabric/"

// A rule gives a purpose to functions whose names have one of the prefixes.
type rule struct {
	purpose  Purpose
	prefixes []string
}

// anywhere are rules for a function anywhere in a stack. The first that fits counts.
func anywhere() []rule {
	return []rule{
		{Memory, []string{"runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.mallocgc", "runtime.newobject", "runtime.growslice", "runtime.makeslice", "runtime.morestack", "runtime.newstack"}},
		{Sockets, []string{"internal/poll.(*FD)", "syscall.Read", "syscall.Write"}},
		{HandOffs, []string{
			"runtime.schedule", "runtime.findRunnable", "runtime.park_m", "runtime.mcall", "runtime.goready", "runtime.ready", "runtime.futex", "runtime.selectgo", "runtime.chansend",
			"runtime.chanrecv", "runtime.gopark", "runtime.sysmon", "runtime.mstart", "runtime.mPark", "runtime.notewakeup", "runtime.newproc", "net.(*pipe)", "sync.(*Cond)", "internal/sync.(*Mutex).lockSlow",
		}},
		{Record, []string{project + "bus/state/record."}},
	}
}

// innermost are rules for the function of a stack that is the innermost with a rule.
func innermost() []rule {
	return []rule{
		{JSON, []string{"github.com/go-json-experiment/json", project + "schema/plainjson."}},
		{Server, []string{"github.com/nats-io/nats-server/"}},
		{Client, []string{"github.com/nats-io/nats%2ego", "github.com/nats-io/nats.go", project + "bus/internal/natsconn.", project + "bus.", project + "bus/client."}},
		{Reports, []string{"github.com/prometheus/", project + "bus/aggregator/observe."}},
		{Limits, []string{project + "bus/aggregator/internal/intake.", project + "bus/aggregator/ratelimit."}},
		{Planning, []string{project + "bus/dispatch.(*Snapshot)", project + "bus/dispatch.(*call).fold", project + "bus/dispatch.settle", project + "bus/dispatch.Fold", project + "bus/dispatch/cond."}},
		{Hooks, []string{project + "bus/dispatch.", project + "bus/aggregator/internal/remote.", project + "workers", project + "builtin", project + "schema."}},
		{Steps, []string{project + "bus/", project + "cmd/"}},
	}
}

// Of returns the time of each purpose in a CPU profile. It leaves out samples with the function
// skipped in their stacks.
func Of(data []byte, skipped string) (map[Purpose]schema.Duration, error) {
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	spent := map[Purpose]schema.Duration{}
	for _, s := range p.Sample {
		var stack []string // the innermost function first
		for _, l := range s.Location {
			for _, line := range l.Line {
				stack = append(stack, line.Function.Name)
			}
		}
		if !slices.ContainsFunc(stack, func(name string) bool { return strings.HasPrefix(name, skipped) }) {
			spent[purposeOf(stack)] += schema.Duration(s.Value[len(s.Value)-1])
		}
	}
	return spent, nil
}

func purposeOf(stack []string) Purpose {
	for _, r := range anywhere() {
		if slices.ContainsFunc(stack, r.fits) {
			return r.purpose
		}
	}
	for _, name := range stack {
		for _, r := range innermost() {
			if r.fits(name) {
				return r.purpose
			}
		}
	}
	return Other
}

func (r rule) fits(name string) bool {
	return slices.ContainsFunc(r.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
